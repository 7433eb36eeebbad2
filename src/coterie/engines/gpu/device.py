"""Which device there is, and whether a problem fits into its memory."""

from __future__ import annotations

from typing import Any

import torch


def choose(device: Any = None) -> Any:
    """The device of that name; the GPU where none is named."""
    if device is not None:
        return torch.device(device)
    if not torch.cuda.is_available():
        raise RuntimeError(
            'engine="gpu" needs an NVIDIA GPU that torch can use, and there is none here '
            f"(torch {torch.__version__}, built for CUDA {torch.version.cuda}): "
            "install a build of torch for your driver, or leave engine out"
        )
    return torch.device("cuda")
