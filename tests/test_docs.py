"""Every Python block of every document runs, in order, one namespace per file; every link leads somewhere."""

import re
from pathlib import Path

import pytest

import coterie as ct

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


def test_the_reference_has_every_public_name():
    listed = set((ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8").split())
    names = {name for name in ct.__all__ if name != "plot"} | {f"plot.{name}" for name in ct.plot.__all__}
    assert names - listed == set()


def test_the_tutorials_are_in_an_order():
    names = {path.name for path in (ROOT / "examples" / "tutorials").glob("*.py")}
    text = (ROOT / "docs" / "_extensions" / "tutorial_order.py").read_text(encoding="utf-8")
    assert names == set(re.findall(r'"(\w+\.py)"', text))


def test_the_walks_through_the_code_name_what_there_is():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = text.partition("## Four walks")[2].partition("\n## ")[0]
    files = list((ROOT / "src" / "coterie").rglob("*"))
    paths = " ".join(f"{path.as_posix()}{'/' * path.is_dir()}" for path in files) + " "
    code = "".join(path.read_text(encoding="utf-8") for path in files if path.suffix == ".py")
    named = [name for name in re.findall(r"`([^`]+)`", walks) if " " not in name]
    assert len(named) > 50
    for name in named:
        if name.endswith((".py", "/")):
            assert f"/{name} " in paths, name
        else:
            for part in name.partition("(")[0].split("."):
                assert part in ("ct", "model") or re.search(rf"\b(def|class) {part}\b|\b{part}: ", code), name


def test_the_readme_is_short():
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 120


def test_the_readme_says_what_its_example_gives():
    names: dict = {}
    exec(BLOCK.search(PAGES[0].read_text(encoding="utf-8")).group(1), names)
    assert abs(names["solution"].w - ([[2, 2]] * 3 + [[-2, 2]] * 3)).max() < 0.05
    assert names["solution"].gap < 1e-6
