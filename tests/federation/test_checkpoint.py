from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.federation import checkpoint
from coterie.federation.loop import Rules, State, federate
from coterie.federation.partition import partition
from coterie.federation.simulate import Simulated
from coterie.federation.site import Site
from problems import instance

THREE = np.arange(12) // 4
DIGESTS = {"the settings": "1", "the data of site '0'": "2"}


class Federation:
    """Three sites in this process, and as many fresh states as a test needs."""

    def __init__(self) -> None:
        self.problem = instance()
        parts, self.cut = partition(self.problem.graph, THREE)
        self.sites = [Site(part.problem(self.problem), part.boundary) for part in parts]
        self.introductions = [s.introduce(str(k), self.cut.nodes[self.cut.of(k)]) for k, s in enumerate(self.sites)]

    def state(self) -> State:
        p = self.problem
        return State.first(self.cut, p.penalty, p.lam, p.n_features, self.introductions)

    def run(self, state: State, **rules: Any) -> Any:
        return federate(Simulated(self.sites), state, Rules(**rules))


@pytest.fixture(scope="module")
def federation() -> Federation:
    return Federation()


@pytest.fixture
def saved(federation: Federation, tmp_path: Path) -> Path:
    state, path = federation.state(), tmp_path / "checkpoint.npz"
    federation.run(state, max_rounds=5)
    checkpoint.save(path, state, DIGESTS)
    return path


def rewrite(path: Path, **changes: Any) -> None:
    with np.load(path) as file:
        arrays = {key: file[key] for key in file}
    np.savez(path, **{**arrays, **changes})


def test_a_run_goes_on_and_proves_anew(federation: Federation, saved: Path) -> None:
    state = federation.state()
    checkpoint.restore(saved, state, DIGESTS)
    assert len(state.history) == 5
    assert state.certificate.gap == np.inf
    outcome = federation.run(state)
    assert outcome.gap <= 1e-6
    assert outcome.rounds > 5


def test_a_run_that_was_over_asks_once_more(federation: Federation, tmp_path: Path) -> None:
    state, path = federation.state(), tmp_path / "checkpoint.npz"
    first = federation.run(state, max_rounds=4)
    checkpoint.save(path, state, DIGESTS)
    state = federation.state()
    checkpoint.restore(path, state, DIGESTS)
    again = federation.run(state, max_rounds=4)
    assert again.rounds == 5
    assert np.isfinite([first.objective, again.objective, again.dual_bound]).all()


def test_numbers_that_were_changed_prove_nothing(federation: Federation, saved: Path) -> None:
    with np.load(saved) as file:
        facts, u, scalars = json.loads(str(file["facts"])), file["u"], file["certificate_scalars"]
    facts |= {"proof": [1e9, 1.0, True], "objective": -1e9}
    rewrite(saved, u=u + 3.0, certificate_scalars=scalars + 1e6, facts=np.array(json.dumps(facts)))
    state = federation.state()
    checkpoint.restore(saved, state, DIGESTS)
    outcome, best = federation.run(state), ct.solve(federation.problem, 1e-9).objective
    assert outcome.gap <= 1e-6
    assert outcome.dual_bound <= best * (1 + 1e-8)
    assert outcome.objective <= best * (1 + 1e-6)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"PK\x03\x04 no archive"),
        lambda path: path.write_bytes(path.read_bytes()[:-200]),
        lambda path: path.write_bytes(path.read_bytes()[:300] + b"\0" * 64 + path.read_bytes()[364:]),
        lambda path: np.savez(path, facts=np.array("{}")),
        lambda path: np.savez(path, facts=np.array("no JSON")),
        lambda path: rewrite(path, facts=np.array([object()])),
        lambda path: rewrite(path, w=np.zeros((1, 1))),
        lambda path: rewrite(path, u=np.full((3, 3), np.nan)),
        lambda path: rewrite(path, replies=np.zeros(4)),
        lambda path: rewrite(path, certificate_scalars=np.zeros(2)),
    ],
    ids=[
        "empty",
        "no archive",
        "cut off",
        "overwritten",
        "no facts",
        "no JSON",
        "pickle",
        "shape",
        "nan",
        "replies",
        "few",
    ],
)
def test_a_damaged_file_is_refused_and_changes_nothing(federation: Federation, saved: Path, spoil: Any) -> None:
    spoil(saved)
    state = federation.state()
    with pytest.raises(checkpoint.CheckpointError, match=r"checkpoint\.npz cannot be read"):
        checkpoint.restore(saved, state, DIGESTS)
    assert not state.history
    assert not state.coordinator.replies
    assert not state.coordinator.u.any()


def test_what_differs_is_named(federation: Federation, saved: Path) -> None:
    with pytest.raises(checkpoint.CheckpointError, match="another problem: the data of site '0' changed"):
        checkpoint.restore(saved, federation.state(), {**DIGESTS, "the data of site '0'": "other"})
    with pytest.raises(checkpoint.CheckpointError, match="another problem: the settings changed"):
        checkpoint.restore(saved, federation.state(), {"the data of site '0'": "2"})


def test_a_full_disk_leaves_the_last_checkpoint(
    federation: Federation, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, **arrays: Any) -> None:
        path.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(saved, federation.state(), DIGESTS)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]
