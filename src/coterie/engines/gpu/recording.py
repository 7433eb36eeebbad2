"""Work that is recorded once and repeated as a whole (CUDA graphs): small problems are bound by launches."""

from __future__ import annotations

from collections.abc import Callable

import torch

SMALL = 1 << 24  # duals, up to which a GPU waits for launches


def repeatable(work: Callable[[], None], duals: int, device: torch.device) -> Callable[[], None]:
    """Work on fixed tensors, recorded where that pays; it must have been done before, and is not done here.

    It reads no number on the host, and leaves no tensor of its own that anybody reads later.
    """
    if device.type != "cuda" or duals > SMALL:
        return work
    graph, now, aside = torch.cuda.CUDAGraph(), torch.cuda.current_stream(device), torch.cuda.Stream(device)
    aside.wait_stream(now)
    with torch.cuda.stream(aside):
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            work()
        finally:
            graph.capture_end()
    now.wait_stream(aside)
    return graph.replay
