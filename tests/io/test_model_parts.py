"""A model whose nodes are in several files, one for each rank that wrote it, is the model in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.io.errors import ModelFileError
from coterie.io.model import read_model, remove_others, write_arrays, write_record
from coterie.io.model_parts import OF_NODES, PARTS, name_arrays

NAMES = ["b", "é", "a", "", "cc"]


@pytest.fixture
def model(tmp_path: Path) -> ct.NetworkedLinearRegression:
    graph = ct.EmpiricalGraph.from_any([("b", "é"), ("é", "a"), ("a", ""), ("cc", "b")])
    rows = np.array([[1.0], [2.0], [3.0], [1.0], [2.0]])
    fitted = ct.NetworkedLinearRegression(graph, lam=0.1, engine="numpy").fit(rows, rows[:, 0] ** 2, groups=NAMES)
    fitted.save(tmp_path / "whole")
    return fitted


def in_two(folder: Path, model: Any) -> Path:
    """The same model, as two ranks write it: nodes by turns, edges where their first node is."""
    record, arrays = read_model(folder / "whole")
    names, out = record.pop("nodes"), folder / "parts"
    record.pop("arrays")
    out.mkdir()
    parts = []
    for rank in (0, 1):
        own = np.flatnonzero(np.arange(len(names)) % 2 == rank)
        counted = arrays["edges"][:, 0] % 2 == rank
        part = {name: arrays[name][own] for name in OF_NODES} | name_arrays([names[k] for k in own])
        part |= {"numbers": own, "undetermined": np.empty(0, dtype=np.int64)}
        part |= {name: arrays[name][counted] for name in ("edges", "u", "weights")}
        parts.append(write_arrays(out, part, f"{rank}-of-2-"))
    shared = {name: arrays[name] for name in ("centre", "spread")}
    write_record(out, record | {"schema": PARTS, "text_ids": True}, write_arrays(out, shared) | {"parts": parts})
    return out


def test_it_is_the_same_model(model: ct.NetworkedLinearRegression, tmp_path: Path) -> None:
    found = ct.load(in_two(tmp_path, model))
    assert found.nodes_.tolist() == sorted(NAMES)
    np.testing.assert_array_equal(found.coef_, model.coef_)
    np.testing.assert_array_equal(found.dual_coef_, model.dual_coef_)
    np.testing.assert_array_equal(found.graph_.edges, model.graph_.edges)
    np.testing.assert_array_equal(found.predict([[2.0]], groups=["é"]), model.predict([[2.0]], groups=["é"]))


def test_one_that_lacks_a_part_is_refused(model: ct.NetworkedLinearRegression, tmp_path: Path) -> None:
    folder = in_two(tmp_path, model)
    next(folder.glob("arrays-1-of-2-*")).unlink()
    with pytest.raises(ModelFileError, match="its arrays cannot be read"):
        ct.load(folder)


def test_numbers_that_do_not_fit_are_refused(model: ct.NetworkedLinearRegression, tmp_path: Path) -> None:
    folder = in_two(tmp_path, model)
    record, _ = read_model(folder)
    first = record["arrays"]["parts"][0]
    record["arrays"]["parts"] = [first]
    arrays = record.pop("arrays")
    write_record(folder, {**record, "nodes": None}, arrays)
    with pytest.raises(ModelFileError, match="the model is damaged"):
        ct.load(folder)


def test_a_model_that_is_written_anew_is_in_one_file(model: ct.NetworkedLinearRegression, tmp_path: Path) -> None:
    folder = in_two(tmp_path, model)
    ct.load(folder).save(folder)
    assert len(list(folder.glob("arrays-*"))) == 1
    np.testing.assert_array_equal(ct.load(folder).coef_, model.coef_)
    remove_others(folder, [])
    with pytest.raises(ModelFileError):
        ct.load(folder)
