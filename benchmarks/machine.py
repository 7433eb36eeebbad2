"""Where it was measured: processor, memory, versions. No names. And what memory this process took."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("coterie", "numpy", "scipy", "numba", "polars", "cvxpy", "clarabel", "piqp", "ortools", "prox_tv")


def describe(cut_python: str | None = None) -> list[str]:
    """Lines about the machine and the packages; `cut_python` runs the environment of cut pursuit."""
    versions = [f"{name} {found}" for name in PACKAGES if (found := version_of(name))]
    if cut_python and (found := _version_there(cut_python, "pycut_pursuit")):
        versions.append(f"pycut_pursuit {found} with NumPy {_version_there(cut_python, 'numpy')}")
    return [
        f"{processor()}, {os.cpu_count()} cores, {memory_gb():.0f} GB of memory",
        f"{platform.system()}, Python {platform.python_version()}; " + ", ".join(versions),
    ]


def processor() -> str:
    """The model of the processor."""
    return _proc("cpuinfo").get("model name", platform.machine())


def memory_gb() -> float:
    """The memory of the machine."""
    return int(_proc("meminfo").get("MemTotal", "0 kB").split()[0]) * 1024 / 1e9


def peak_mb() -> float:
    """The most memory that this process has had so far, in MB: solver, problem, Python and libraries."""
    peak = _proc("self/status").get("VmHWM")
    return int(peak.split()[0]) * 1024 / 1e6 if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _proc(name: str) -> dict[str, str]:
    path = Path("/proc") / name
    lines = path.read_text().splitlines() if path.exists() else []
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _version_there(python: str, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version('{package}'))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
