"""GPU engines for the suites: on a GPU where there is one, else on the CPU; none where torch is missing.

Kernels run on the CPU in Triton's interpreter, where TRITON_INTERPRET=1 is set (`make test-gpu`).
"""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from typing import Any

HERE = find_spec("torch") is not None


def engines() -> dict[str, Any]:
    """How to make each engine, by name."""
    if not HERE:
        return {}
    import torch

    from coterie.engines.gpu.engine import GpuEngine

    device = "cuda" if torch.cuda.is_available() else "cpu"
    made = {f"torch, {device}": partial(GpuEngine, device, fused=False)}
    if kernels_run():
        made[f"triton, {device}"] = partial(GpuEngine, device, torch.float64, fused=True)
    return made


def kernels_run() -> bool:
    """Whether kernels can run here: on a GPU, or interpreted."""
    if not HERE or find_spec("triton") is None:
        return False
    import torch

    return torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"
