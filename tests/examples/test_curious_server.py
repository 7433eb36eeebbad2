"""What docs/federation.md says of a curious server is true: an honest transcript gives XᵀX away."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from coterie.federation.dp_moments import RowPrivacy, numpy_noisy


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "curious_server.py"
    spec = importlib.util.spec_from_file_location("curious_server", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_as_many_replies_as_features_and_one_more_give_the_second_moments(example: ModuleType) -> None:
    problem = example.network(sites=5)
    assert max(example.errors(problem, 6)) < 1e-6


def test_released_rows_have_other_moments(example: ModuleType) -> None:
    pytest.importorskip("dp_accounting", reason="needs the extra coterie[privacy]")
    problem = example.network(sites=5)
    privacy = RowPrivacy(1.0, x_clip=3.0, y_clip=3.0)
    released = replace(problem, data=privacy.release(problem.data, numpy_noisy(np.random.default_rng(0))))
    true, noisy = ([m.data.X[m.data.nodes == k] for k in range(5)] for m in (problem, released))
    apart = [
        np.linalg.norm(a.T @ a / len(a) - b.T @ b / len(b)) / np.linalg.norm(a.T @ a / len(a))
        for a, b in zip(true, noisy, strict=True)
    ]
    assert min(apart) > 0.1
