"""The package as a whole: quick to import, typed, honest about its names."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import coterie as ct

HERE = Path(ct.__file__).parent
ROOT = Path(__file__).parent.parent
HEAVY = [
    "numpy",
    "scipy",
    "sklearn",
    "numba",
    "matplotlib",
    "narwhals",
    "pandas",
    "polars",
    "networkx",
    "typer",
    "rich",
    "jinja2",
    "plotly",
    "cvxpy",
]


def imported_by(statement: str) -> set[str]:
    """Names of the modules that a statement brings into a fresh interpreter."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_is_quick() -> None:
    """Counted, not timed: nothing heavy, and little of anything."""
    modules = imported_by("import coterie")
    assert not modules & set(HEAVY)
    assert len(modules) < 40, sorted(modules)


def test_solving_needs_numpy_and_scipy_only() -> None:
    modules = imported_by(
        "import coterie; coterie.solve, coterie.Problem, coterie.EmpiricalGraph, coterie.SquaredError"
    )
    assert not modules & (set(HEAVY) - {"numpy", "scipy", "numba"})


@pytest.mark.parametrize("name", ct.__all__)
def test_public_names_exist_and_are_documented(name: str) -> None:
    assert getattr(ct, name).__doc__
    assert name in dir(ct)


def test_type_checkers_see_the_public_names() -> None:
    tree = ast.parse((HERE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {alias.name for line in block.body if isinstance(line, ast.ImportFrom) for alias in line.names}
    assert seen == set(ct.__all__)
    assert list(ct.__all__) == sorted(ct.__all__)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'coterie' has no attribute 'sovle'"):
        ct.sovle  # noqa: B018


def test_the_package_is_typed() -> None:
    assert (HERE / "py.typed").exists()


def test_one_version_everywhere() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert ct.__version__ == declared == importlib.metadata.version("coterie")
    assert cited is not None
    assert cited[1] == declared


def test_no_array_is_read_from_a_pickle() -> None:
    """Model files must not be able to run code. (Modules that pickle are banned by the linter, TID251.)"""
    for path in HERE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.unparse(node.value) == "False", path


def test_the_changelog_knows_this_version() -> None:
    assert ct.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
