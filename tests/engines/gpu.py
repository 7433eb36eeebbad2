"""GPU engines for the suites: on a GPU where there is one, else in torch on the CPU; none where torch is missing."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any


def engines() -> dict[str, Any]:
    """How to make each engine, by name."""
    if find_spec("torch") is None:
        return {}
    import torch

    from coterie.engines.gpu.engine import GpuEngine

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return {f"torch, {device}": partial(GpuEngine, device, fused=False)}
