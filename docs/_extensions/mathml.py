"""Formulas as MathML, which browsers draw by themselves; docutils translates them from LaTeX."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
FENCE = re.compile(r'<mo( class="mathopen")?>([⟨⟩|‖])</mo>')


def mathml(node: nodes.Element, block: bool) -> str:
    """Return the formula of a node; one that docutils cannot read is a warning, and stands as it was written."""
    try:
        return FENCE.sub(fence, latex2mathml.tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        logger.warning("a formula cannot be read: %s", error, location=node)
        return f"<code>{node.astext()}</code>"


def fence(match: re.Match[str]) -> str:
    """Return a bracket as high as a letter, close to what it encloses."""
    form = "prefix" if match[1] or match[2] == "⟨" else "postfix"
    return f'<mo form="{form}" stretchy="false">{match[2]}</mo>'


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula inside a sentence."""
    self.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    self.body.append(f'<div class="formula">{mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
