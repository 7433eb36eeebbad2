"""Where compiled kernels are kept, also by several processes at once, and where they cannot be."""

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from hashlib import blake2b
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl

import coterie
from coterie.kernels import compiling, kept
from coterie.kernels.exact import strict

WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override")  # permissions bind root, too

FIT_AND_PREDICT = """
import importlib, pkgutil
import numpy as np
import coterie as ct
from coterie import kernels
from coterie.kernels.choice import using

for module in pkgutil.iter_modules(kernels.__path__):  # all kernels are looked for on disk
    importlib.import_module(f"coterie.kernels.{module.name}")
X, nodes = np.random.default_rng(0).standard_normal((9, 2)), np.repeat([0, 1, 2], 3)
model = ct.NetworkedLinearRegression(ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)]), lam=0.1)
model.fit(X, X @ [1.0, 2.0], groups=nodes)
assert model.gap_ <= 1e-6
with using(compiled=True):  # and some are compiled
    compiled = model.problem_.objective(model.solution_.w)
with using(compiled=False):
    assert abs(compiled - model.problem_.objective(model.solution_.w)) <= 1e-12 * abs(compiled)
print(ct.__file__, model.predict(X, groups=nodes).shape)
"""


def total(values):
    out = 0.0
    for value in values:
        out += value
    return out


@pytest.fixture
def nowhere_to_write(monkeypatch):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(compiling, "_announcer", compiling._Announcer())


@pytest.mark.usefixtures("nowhere_to_write")
@pytest.mark.parametrize("decorator", [compiling.jit, compiling.fastmath, strict])
def test_a_kernel_works_without_a_cache_and_says_so_once(decorator):
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR"):
        kernel = decorator(total)
    assert kernel(np.arange(4.0)) == 6.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decorator(total)


def test_other_errors_of_the_compiler_are_not_swallowed(monkeypatch):
    def broken(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(compiling.numba, "njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        compiling.jit(total)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv, so that permissions bind every user")
def test_fit_and_predict_from_a_read_only_folder_without_a_home():
    folder = Path(tempfile.mkdtemp())
    try:
        package = folder / "coterie"
        shutil.copytree(Path(coterie.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (folder, package, *package.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        hidden = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        command = [*(WITHOUT_OVERRIDE if os.getuid() == 0 else ()), sys.executable, "-c", FIT_AND_PREDICT]
        environment |= {"HOME": str(folder), "PYTHONPATH": str(folder)}
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(str(package))
        assert done.stderr.count("NUMBA_CACHE_DIR") == 1
    finally:
        for path in (folder, *folder.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(folder)


def test_what_is_kept_belongs_to_the_sources_of_all_kernels(monkeypatch) -> None:
    """A kernel is compiled into others: numbers of yesterday's must not come back."""

    def stamp() -> object:
        return compiling.cached(lambda x: x)._cache._cache_file._source_stamp

    before = stamp()
    assert stamp() == before
    kept._all_kernels.cache_clear()
    monkeypatch.setattr(kept, "blake2b", lambda **options: blake2b(b"another kernel", **options))
    assert stamp() != before
    kept._all_kernels.cache_clear()


def test_kernels_are_kept_and_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    for found in (0, 2):
        kernel = compiling.cached(total, **compiling.OPTIONS)
        assert kernel(np.arange(4.0)) == 6.0
        assert kernel(np.ones((3, 2))[:, 0]) == 3.0  # strides: another kernel
        assert sum(kernel.stats.cache_hits.values()) == found
    assert len(list(tmp_path.rglob("*.nbc"))) == 2
    assert not list(tmp_path.rglob("*.nbi"))


def test_processes_that_keep_kernels_at_once_find_their_own(tmp_path):
    """Both look when nothing is there yet, and one writes while the other does: Numba's own file mixes them up."""

    class Slow(kept.KeptKernels):
        def _save_data(self, name, data):
            quick.save(("of vectors",), "a kernel of vectors")
            super()._save_data(name, data)

    quick, slow = kept.KeptKernels(tmp_path, "total", 1), Slow(tmp_path, "total", 1)
    slow.save(("of numbers",), "a kernel of numbers")
    for reader in (quick, slow):
        assert reader.load(("of vectors",)) == "a kernel of vectors"
        assert reader.load(("of numbers",)) == "a kernel of numbers"


def test_a_file_that_holds_another_kernel_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(kept.KeptKernels, "_name", lambda self, key: "same.nbc")
    files = kept.KeptKernels(tmp_path, "total", "today")
    files.save("vectors", "a kernel of vectors")
    assert files.load("numbers") is None
    assert kept.KeptKernels(tmp_path, "total", "tomorrow").load("vectors") is None
    assert files.load("vectors") == "a kernel of vectors"


@pytest.mark.parametrize("broken", [b"", b"\x80\x05X", b"cno_such_module\nname\n."])
def test_a_broken_file_is_written_anew(tmp_path, broken):
    """After a power failure it can be empty, and one of another version can name what is gone."""
    files = kept.KeptKernels(tmp_path, "total", 1)
    files.save("vectors", "a kernel of vectors")
    (file,) = tmp_path.iterdir()
    file.write_bytes(broken)
    assert files.load("vectors") is None
    files.save("vectors", "a kernel of vectors")
    assert files.load("vectors") == "a kernel of vectors"


def test_a_kernel_that_cannot_be_kept_works(tmp_path):
    kept.KeptKernels(tmp_path / "gone", "total", 1).save("vectors", "a kernel of vectors")
    assert not list(tmp_path.iterdir())
