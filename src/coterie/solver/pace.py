"""NumPy, or compiled for any n, or for this n? How long a solve will take in NumPy, and when compiling pays.

Compiled kernels are specialised to the penalty and the kind of loss: what they take to compile (or, where that has been
done before, to load) is paid once for each of these *kinds* of problems and process. So a small problem of a new kind
is solved in NumPy; and once NumPy has worked on a kind for about as long as compiling takes, there is more to come, and
it is compiled. Kernels that know the number of features, too, are faster once more, and compiled for each *sort* of
problems that are so large, or so many, that what they save is worth it (decision 22).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from coterie.kernels import BLOCK, compilation, is_wide
from coterie.kernels.choice import has_compiler, is_noted, note_kept
from coterie.kernels.forms import Form
from coterie.problem import BoundProblem

SHORT = 1.0  # seconds in NumPy up to which a solve is short
LOADING, COMPILING = 0.5, 10.0  # seconds in NumPy that are worth kernels from the disk, and new ones
LOADING_N, COMPILING_N = 0.1, 4.0  # seconds saved that are worth kernels that know n; compiling them takes twice that
ITERATIONS = 400  # of a solve
OVERHEAD, EACH = 6e-5, 1.5e-8  # seconds for an iteration in NumPy, and for each number that it works on
LESS = 1.5e-9  # what of it kernels that know n save beside those for any n
SINGLE = 1.5e-10  # what of it those in single precision save beside these
LOOSE = 1e-4  # gaps from which on single precision is enough for iterations
WORTH_A_GPU = 60.0  # seconds in NumPy from which on a GPU is worth starting
CERTIFIED = 0.02  # seconds for the certificates of a solve, however small it is

_in_numpy: defaultdict[Hashable, float] = defaultdict(float)  # seconds, by kind
_saved: defaultdict[Hashable, float] = defaultdict(float)  # what kernels that know n would have saved, by sort
_compiled: set[Hashable] = set()  # kinds, and sorts
_solves: ContextVar[int] = ContextVar("solves to come", default=1)


def kind_of(problem: BoundProblem) -> str:
    """What kernels for any n are specialised to: penalty and loss."""
    columns = "" if problem.by_column is None else "-columns"
    return f"{type(problem.f).__name__}-{problem.penalty.edge_kernel}{columns}"


def sort_of(problem: BoundProblem) -> str:
    """What kernels that know n are specialised to: columns, too (of a last block, where there are many)."""
    n = problem.n_features
    return f"{kind_of(problem)}-{'wide' if is_wide(n) else 'n'}-{(n - 1) % BLOCK + 1 if is_wide(n) else n}"


def seconds_in_numpy(problem: BoundProblem, n_iter: int = ITERATIONS) -> float:
    """About how long so many iterations, and their certificates, take in NumPy."""
    return CERTIFIED + n_iter * (OVERHEAD + EACH * _numbers(problem))


def seconds_saved(problem: BoundProblem, n_iter: int = ITERATIONS) -> float:
    """About what kernels that know n save beside those for any n."""
    return n_iter * LESS * _numbers(problem)


def _seconds_saved_by_single(problem: BoundProblem, n_iter: int) -> float:
    """About what single precision saves, where there are kernels for it."""
    return n_iter * SINGLE * _numbers(problem)


def _numbers(problem: BoundProblem) -> int:
    """How many an iteration works on."""
    rows = 0 if problem.f.below is None else len(problem.f.below.X)
    return (problem.graph.n_edges + problem.graph.n_nodes + rows) * problem.n_features


def may_be_rough(problem: BoundProblem, tol: float) -> bool:
    """Whether single precision is enough for iterations; with models of many weights it is for gaps of 1e-6, too."""
    return tol >= LOOSE or problem.f.quadratic is None


def is_long(problem: BoundProblem) -> bool:
    """Whether a solve takes long in NumPy."""
    return seconds_in_numpy(problem) > SHORT


def are_worth_knowing_n(problem: BoundProblem, solves: int) -> bool:
    """Whether so many solves are worth kernels that know n, whatever was solved before them."""
    return has_compiler() and solves * seconds_saved(problem) > COMPILING_N


@contextmanager
def expecting(solves: int) -> Iterator[None]:
    """Inside, solves are some of so many of one sort."""
    token = _solves.set(solves * _solves.get())
    try:
        yield
    finally:
        _solves.reset(token)


class Pace:
    """Keeps the time that solves of one sort take.

    It is estimated, not measured: what is solved how must not depend on how busy the machine is.
    """

    def __init__(self, problem: BoundProblem) -> None:
        self.problem, self.kind, self.sort = problem, kind_of(problem), sort_of(problem)
        self.single = f"{self.sort}-single"
        self.can_compile = problem.penalty.edge_kernel is not None and has_compiler()

    def form(self, n_iter: int = 0) -> Form:
        """The form of kernels that pays, after so many iterations."""
        if not self.can_compile:
            return Form.NUMPY
        if self.sort in _compiled or self._knowing_n_pays(n_iter):
            return Form.THIS_N
        return Form.ANY_N if self.kind in _compiled or self._compiling_pays(n_iter) else Form.NUMPY

    def single_pays(self) -> bool:
        """Whether kernels in single precision, too, are worth their time, for loose gaps."""
        saved = max(_saved[self.single], _solves.get() * _seconds_saved_by_single(self.problem, ITERATIONS))
        worth_loading = saved > LOADING_N and is_noted(self.single)
        return self.single in _compiled or saved > COMPILING_N or worth_loading

    def suits_gpu(self) -> bool:
        """Whether there is a GPU on which a solve takes less time than here: very large ones with quadratic losses do.

        Only for those is torch loaded, which takes seconds.
        """
        long = seconds_in_numpy(self.problem) > WORTH_A_GPU
        if not long or self.problem.penalty.kernel is None or self.problem.f.quadratic is None:
            return False
        from coterie.engines.gpu.device import bytes_free, bytes_needed, choose, missing

        with compilation.running():
            return missing() is None and bytes_needed(self.problem) <= bytes_free(choose())

    def ended_roughly(self, n_iter: int, in_single: bool) -> None:
        """Note how precise the kernels of a solve were for which single precision is enough."""
        if in_single:
            _note(self.single)
        else:
            _saved[self.single] += _seconds_saved_by_single(self.problem, n_iter)

    def ended(self, n_iter: int, form: Form) -> None:
        """Note what a solve was done with, and how long it took."""
        if form is Form.NUMPY:
            _in_numpy[self.kind] += seconds_in_numpy(self.problem, n_iter)
        else:
            _note(self.kind)
        if form is not Form.THIS_N:
            _saved[self.sort] += seconds_saved(self.problem, n_iter)
        else:
            _note(self.sort)

    def _compiling_pays(self, n_iter: int) -> bool:
        so_far = _in_numpy[self.kind] + seconds_in_numpy(self.problem, n_iter)
        in_all = max(so_far, _solves.get() * seconds_in_numpy(self.problem))
        return is_long(self.problem) or in_all > patience(self.kind)

    def _knowing_n_pays(self, n_iter: int) -> bool:
        so_far = _saved[self.sort] + seconds_saved(self.problem, n_iter)
        saved = max(so_far, _solves.get() * seconds_saved(self.problem))
        return saved > COMPILING_N or (saved > LOADING_N and is_noted(self.sort))


def _note(kernels: str) -> None:
    """Note, here and for later processes, that kernels of a kind or sort have been compiled."""
    if kernels not in _compiled:
        _compiled.add(kernels)
        note_kept(kernels)


def patience(kind: str) -> float:
    """How many seconds in NumPy are worth compiled kernels: few where those of this kind have been kept on disk."""
    return LOADING if is_noted(kind) else COMPILING
