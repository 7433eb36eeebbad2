"""Which device there is, what it lacks, and whether a problem fits into its memory. Torch is loaded when asked for."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from coterie.problem import BoundProblem

INSTALL = "install torch and Triton, the extra coterie[gpu]"
OLDEST = (7, 0)  # compute capability that Triton compiles for
EDGE_NUMBERS, EDGE = 15, 250  # numbers of 8 bytes for each dual that are held at once, and bytes for an edge
PIECE = 1 << 26  # bytes of a large tensor that come to the host at a time
NODE_NUMBERS = 30  # numbers of 8 bytes for each weight
ROW_NUMBERS = 8  # numbers of 8 bytes for each entry of X, while products are made


class NoGPU(RuntimeError):  # noqa: N818  it says what is missing
    """There is no GPU that the engine can use; the message says why, and what to do."""


@cache
def missing() -> str | None:
    """What the GPU engine lacks here, and what to do about it, in a sentence; None where nothing is missing."""
    if find_spec("torch") is None:
        return f'engine="gpu" needs torch, which is not installed: {INSTALL}'
    import torch

    build = f"torch {torch.__version__}"
    if torch.version.cuda is None:
        return f'engine="gpu" needs a build of torch for CUDA, and this one ({build}) has none: {INSTALL}'
    try:
        torch.cuda.init()
    except RuntimeError as error:  # no GPU, no driver, or one that is too old: torch says which
        reason = str(error).splitlines()[0].rstrip(".")
        return (
            f'engine="gpu" cannot use a GPU here: {reason}. {build} is built for CUDA {torch.version.cuda}: update the '
            "driver, or install a build of torch that suits it; or leave engine out, and the processor does the work"
        )
    if find_spec("triton") is None:
        return f'engine="gpu" needs Triton, which compiles its kernels and is not installed: {INSTALL}'
    if (found := torch.cuda.get_device_capability()) < OLDEST:
        name, needed = torch.cuda.get_device_name(), ".".join(map(str, OLDEST))
        return (
            f'engine="gpu" needs a GPU of compute capability {needed} or newer, and {name} has '
            f"{'.'.join(map(str, found))}: leave engine out, and the processor does the work"
        )
    return None


def choose(device: Any = None) -> Any:
    """The device of that name; the GPU where none is named, or `NoGPU`."""
    if device is None and (reason := missing()) is not None:
        raise NoGPU(reason)
    import torch

    return torch.device("cuda" if device is None else device)


def bytes_needed(problem: BoundProblem) -> int:
    """About how many bytes a solve takes on the device, iterations and proofs together, at most."""
    graph, n = problem.graph, problem.n_features
    rows = 0 if problem.f.design is None else problem.f.design.X.size
    quadratic = problem.f.quadratic
    tables = 0 if quadratic is None else 3 * len(problem.M) * n * min(n, 32) + 3 * quadratic.V.size
    duals, weights = graph.n_edges * (EDGE_NUMBERS * 8 * n + EDGE), 8 * NODE_NUMBERS * graph.n_nodes * n
    return duals + weights + 8 * (ROW_NUMBERS * rows + tables)


def bytes_free(device: Any) -> float:
    """How many the device has left; infinity where that is not a GPU."""
    import torch

    if device.type != "cuda":
        return float("inf")
    here, kept = torch.cuda.mem_get_info(device)[0], torch.cuda.memory_reserved(device)
    return here + kept - torch.cuda.memory_allocated(device)


def refuse_large(problem: BoundProblem, device: Any) -> None:
    """Raise MemoryError, with both numbers of bytes, for a problem that is too large for the device."""
    needed, free = bytes_needed(problem), bytes_free(device)
    if needed > free:
        graph = problem.graph
        raise MemoryError(
            f"{graph.n_nodes:,} nodes and {graph.n_edges:,} edges with {problem.n_features} features take about "
            f'{needed:,} bytes on a GPU, and {free:,.0f} are free there: leave engine="gpu" out, and the processor '
            "does the work"
        )


def on_host(x: Any) -> Any:
    """A tensor as an array of this process; large ones come in pieces through memory that the GPU can write to."""
    import torch

    if x.device.type != "cuda" or x.numel() * x.element_size() < 2 * PIECE:
        return x.cpu().numpy()
    whole = torch.empty(x.shape, dtype=x.dtype)
    source, target, each = x.contiguous().view(-1), whole.view(-1), PIECE // x.element_size()
    room = torch.empty(each, dtype=x.dtype, pin_memory=True)
    for first in range(0, len(source), each):
        piece = source[first : first + each]
        target[first : first + each] = room[: len(piece)].copy_(piece)
    return whole.numpy()
