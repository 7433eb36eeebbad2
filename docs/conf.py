"""How the documentation site is built: `make docs`, without the network, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
sys.path.insert(0, str(HERE.parent / "src"))

import coterie  # noqa: E402

project = "Coterie"
author = "The Coterie developers"
project_copyright = "The Coterie developers"
version = release = coterie.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "from_code",
    "mathml",
    "outside_links",
]
exclude_patterns = ["_build", "_extensions", "**/GALLERY_HEADER.rst"]
suppress_warnings = [
    "config.cache",  # the gallery's settings hold objects, so that settings are not kept between builds
    "misc.highlighting_failure",  # what a console shows is not always a program
]

smartquotes = False  # options begin with two hyphens, and defaults have straight quotes

# Markdown
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"  # drawn by the browser itself: no MathJax, no fonts, nothing to fetch

# Reference
autosummary_generate = True
autosummary_filename_map = {
    "coterie.Resolvability": "coterie.ResolvabilityRecord"
}  # files whose names differ in case only
toc_object_entries_show_parents = "hide"  # "fit()" beside the page of its class
autodoc_typehints = "none"  # numpydoc says what is what
numpydoc_show_class_members = False  # templates say what is shown of a class

# Tutorials: each file of examples/tutorials is run when the site is built.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/tutorials"],
    "gallery_dirs": ["tutorials"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "tutorial_order.by_number",
    "download_all_examples": False,
    "capture_repr": (),  # what a program prints is shown, and no values of last lines
    "thumbnail_size": (400, 220),
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "image_srcset": ["2x"],
}

# Pages
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "Coterie"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"index": [], "compared": []}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "Coterie"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "a11y-dark",
}
