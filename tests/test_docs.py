"""Every Python block of every document runs, in order, one namespace per file; every link leads somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for what a block writes
    text, names = page.read_text(encoding="utf-8"), {"__name__": "document"}
    for block in BLOCK.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block.group(1), str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_readme_says_what_its_example_gives():
    names: dict = {}
    exec(BLOCK.search(PAGES[0].read_text(encoding="utf-8")).group(1), names)
    assert abs(names["solution"].w - ([[2, 2]] * 3 + [[-2, 2]] * 3)).max() < 0.05
    assert names["solution"].gap < 1e-6
