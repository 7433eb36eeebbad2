"""Settings of the whole suite. (Standing here, this file also puts tests/ on the import path: `import problems`.)"""

import os
import signal
import sys
from collections.abc import Iterator

# Before NumPy comes: tests run beside each other, and threads of BLAS wait by spinning (coterie/kernels/blas.py).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from coterie.kernels import choice
from coterie.kernels.forms import Form

# The same examples on every run and no deadline: a slow machine must not make a test fail.
settings.register_profile(
    "coterie",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("coterie"), max_examples=5)  # `make check`
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "coterie"))

# Shells start background jobs with Ctrl-C ignored, which programs inherit; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long: when one of two workers has nothing left to do, the other is nearly done as well."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve with compiled kernels from the first: for tests that solve hundreds of problems of a few sorts."""
    form = lambda pace, n_iter=0: Form.ANY_N if pace.can_compile else Form.NUMPY  # noqa: E731
    monkeypatch.setattr("coterie.solver.pace.Pace.form", form)


@pytest.fixture(scope="module")
def compiled_kernels() -> Iterator[None]:
    """Kernels that are called outside of solves are compiled as well: for tests of what they prove."""
    with choice.using(compiled=True):
        yield


def pytest_runtest_setup() -> None:
    """Every test begins as in a new process that finds no kernels on disk: small problems are NumPy's (decision 22).

    What is compiled then does not depend on which tests ran before, nor on what earlier runs left. Kernels that a test
    calls outside of solves are NumPy's, too, although the compiler has been loaded: `using`, or the fixture
    above, asks for others.
    """
    choice.is_loaded = lambda: False
    pace = sys.modules.get("coterie.solver.pace")
    if pace is not None:
        for kept in (pace._in_numpy, pace._saved, pace._compiled):
            kept.clear()
        pace.is_noted = lambda kernels: False
