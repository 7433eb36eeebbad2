"""What a site answers, whoever asks: the policy in its folder, the log of what left, and codes instead of words."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra coterie[flower]")

from flwr.app import ConfigRecord, RecordDict

import coterie as ct
from coterie.federation.audit import AuditLog, entries
from coterie.federation.messages import ProxRequest
from coterie.federation.policy import Policy
from coterie.federation.project import write_sites
from coterie.federation.refusals import Code, RefusedError
from coterie.federation.responder import Responder
from coterie.federation.site_folder import AUDIT, POLICY
from coterie.federation.transport import records
from problems import instance

SETTINGS = {
    "loss": "squared", "alpha": 0.0, "ridge": 0.0, "penalty": "l1", "lam": 0.01, "node": "node", "label": "y",
    "share-weights": True, "privacy-noise": 0.0, "privacy-clip": 1.0, "privacy-rounds": 2, "privacy-delta": 1e-5,
}  # fmt: skip
PRIVATE = {**SETTINGS, "share-weights": False, "privacy-noise": 2.0}
RUN = 7


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One of three sites of a problem of twelve nodes."""
    write_sites(tmp_path, instance(), np.arange(12) // 4, ("east", "north", "west"))
    return tmp_path / "sites" / "north"


def edit(folder: Path, old: str, new: str) -> None:
    text = (folder / POLICY).read_text()
    assert old in text
    (folder / POLICY).write_text(text.replace(old, new, 1))


def question(folder: Path, nodes: list[str] | None = None, v: float = 0.0, **changes: Any) -> RecordDict:
    """A request about the nodes that the policy opens, or about others."""
    asked = sorted(Policy.read(folder).nodes) if nodes is None else nodes
    n = len(Policy.read(folder).features)
    request = ProxRequest(np.full((len(asked), n), v), np.ones(len(asked)), np.inf)
    return records.prox_request(request, asked, {**SETTINGS, **{k.replace("_", "-"): x for k, x in changes.items()}})


def ask(folder: Path, kind: str, content: RecordDict) -> dict[str, Any]:
    """What leaves the site, of which it must have written a line."""
    before = len(entries(folder))
    reply = Responder(folder).reply(RUN, f"query.{kind}", content)
    facts = dict(reply.config_records["facts"])
    last = entries(folder)[-1]
    assert len(entries(folder)) == before + 1
    assert (last.run, last.bytes, last.refused) == (RUN, len(records.encoded(reply)), facts.get("error", ""))
    return facts


def check_refused(folder: Path, kind: str, content: RecordDict, code: Code) -> None:
    """A code and the site's name leave, and nothing else."""
    assert ask(folder, kind, content) == {"site": "north", "error": code.value}


def cells(folder: Path) -> set[str]:
    with (folder / "data.csv").open(newline="") as file:
        return {cell for row in csv.reader(file) for cell in row if cell}


def test_the_policy_of_the_example_answers_what_a_run_asks(folder: Path) -> None:
    nodes = sorted(Policy.read(folder).nodes)
    hello = ask(folder, "introduce", records.introduce_request([*nodes, "99"], SETTINGS))
    assert list(hello["hosts"]) == list(range(len(nodes)))
    assert set(ask(folder, "answer", question(folder))) == {"site", "value", "bound", "left", "reach", "w", "width"}
    assert list(ask(folder, "finish", question(folder))["nodes"]) == ["4", "5", "6", "7"]


def test_a_column_of_features_cannot_be_asked_for_as_nodes(folder: Path) -> None:
    """The first step of an attack that rebuilt all rows of a site."""
    values = sorted(cells(folder))
    for changes in ({"node": "x0"}, {"label": "x0"}, {"node": "y", "label": "node"}):
        settings = {**SETTINGS, **changes}
        check_refused(folder, "introduce", records.introduce_request(values, settings), Code.COLUMNS)
        check_refused(folder, "answer", question(folder, **changes), Code.COLUMNS)
        check_refused(folder, "finish", question(folder, **changes), Code.COLUMNS)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"loss": "logistic"}, Code.LOSS),
        ({"loss": "no such loss"}, Code.SETTINGS),
        ({"penalty": "l2"}, Code.PENALTY),
        ({"loss": "poisson", "exposure": "x0"}, Code.COLUMNS),
        ({"loss": "huber", "delta": 1.0}, Code.LOSS),
        ({"lam": -1.0}, Code.FILES),
        ({"lam": float("nan")}, Code.FILES),
        ({"ridge": float("inf")}, Code.SETTINGS),
        ({"row_privacy_epsilon": float("nan")}, Code.SETTINGS),
        ({"lam": "much"}, Code.SETTINGS),
        ({"privacy_noise": -1.0}, Code.SETTINGS),
    ],
)
def test_settings_that_differ_are_refused(folder: Path, changes: dict[str, Any], code: Code) -> None:
    for kind in ("introduce", "answer", "finish"):
        check_refused(folder, kind, question(folder, **changes), code)


@pytest.mark.parametrize(
    ("loss", "name"), [(ct.Huber(0.1, delta=2.0), "delta"), (ct.Quantile(0.1, q=0.25), "quantile")]
)
def test_the_shape_of_a_loss_is_the_policys(tmp_path: Path, loss: ct.Loss, name: str) -> None:
    """Introductions as a function of δ would tell the size of every label, and quantiles are labels."""
    write_sites(tmp_path, instance(loss=loss), np.arange(12) // 4, ("east", "north", "west"))
    folder = tmp_path / "sites" / "north"
    ours = {"delta": 2.0, "quantile": 0.25}[name]
    same = {"loss": name.replace("delta", "huber"), "ridge": 0.1}
    assert "error" not in ask(folder, "introduce", question(folder, **same, **{name: ours}))
    for other in (ours + 1e-3, str(ours)):
        check_refused(folder, "introduce", question(folder, **same, **{name: other}), Code.LOSS)
    check_refused(folder, "answer", question(folder, **same), Code.LOSS)


def test_inner_nodes_are_neither_hosted_nor_answered(folder: Path) -> None:
    line = next(line for line in (folder / POLICY).read_text().splitlines() if line.startswith("nodes = "))
    edit(folder, line, 'nodes = ["4"]')
    inner = ["5", "6"]
    hello = ask(folder, "introduce", records.introduce_request(inner, SETTINGS))
    assert list(hello["hosts"]) == []
    check_refused(folder, "answer", question(folder, inner), Code.NODES)
    check_refused(folder, "finish", question(folder, inner), Code.NODES)


def test_different_questions_are_counted_over_all_runs_and_restarts(folder: Path) -> None:
    edit(folder, "most = 1000", "most = 2")
    first, second, third = (question(folder, v=v) for v in (0.0, 1.0, 2.0))
    answer = ask(folder, "answer", first)
    ask(folder, "answer", second)
    check_refused(folder, "answer", third, Code.ENOUGH)
    check_refused(folder, "finish", first, Code.ENOUGH)
    assert ask(folder, "answer", first) == answer
    check_refused(folder, "introduce", records.introduce_request([], SETTINGS), Code.ENOUGH)
    assert "error" in Responder(folder).reply(RUN + 1, "query.answer", third).config_records["facts"]


def test_a_site_may_keep_its_inner_weights_answer_one_run_and_one_server(folder: Path) -> None:
    edit(folder, "share-weights = true", "share-weights = false")
    check_refused(folder, "introduce", records.introduce_request([], SETTINGS), Code.SHARE)
    assert list(ask(folder, "finish", question(folder, share_weights=False))["nodes"]) == []
    edit(folder, "runs = []", f"runs = [{RUN + 1}]")
    check_refused(folder, "answer", question(folder, share_weights=False), Code.RUN)
    edit(folder, f"runs = [{RUN + 1}]", "runs = []")
    site, stays = Responder(folder, certificate="1234"), question(folder, share_weights=False)
    assert "error" not in site.reply(RUN, "query.answer", stays).config_records["facts"]
    edit(folder, 'certificate = ""', 'certificate = "AB:CD"')  # while it runs
    assert site.reply(RUN, "query.answer", stays).config_records["facts"]["error"] == Code.SERVER.value
    check_refused(folder, "answer", stays, Code.SERVER)  # behind a SuperNode nobody knows whom it trusts
    with pytest.raises(RefusedError, match="root certificate"):
        site.rehearse()
    assert (
        "error" not in Responder(folder, certificate="abcd").reply(RUN, "query.answer", stays).config_records["facts"]
    )


def test_a_run_whose_questions_would_be_refused_is_refused_at_once(folder: Path) -> None:
    check_refused(folder, "introduce", records.introduce_request([], PRIVATE), Code.QUESTION)
    edit(folder, '"answer", ', "")
    check_refused(folder, "introduce", records.introduce_request([], SETTINGS), Code.QUESTION)


def test_a_site_can_insist_on_privacy_before_its_first_run(folder: Path) -> None:
    edit(folder, '"answer", ', '"answer", "release", ')
    with (folder / POLICY).open("a") as file:
        file.write("[privacy]\nnoise = 2.0\nclip = 1.0\nrounds = 2\ndelta = 1e-5\n")
    check_refused(folder, "introduce", records.introduce_request([], SETTINGS), Code.PRIVACY)
    check_refused(folder, "answer", question(folder), Code.PRIVACY)
    less = {**PRIVATE, "privacy-noise": 1.0}
    check_refused(folder, "introduce", records.introduce_request([], less), Code.PRIVACY)
    assert not (folder / "privacy.db").exists()
    private = {key.replace("-", "_"): value for key, value in PRIVATE.items()}
    for v in (0.0, 1.0):
        assert set(ask(folder, "release", question(folder, v=v, **private))) == {"site", "nodes", "w", "width"}
    check_refused(folder, "answer", question(folder, **private), Code.PRIVACY)
    # After the budget is spent nothing tells a label or who is a member.
    check_refused(folder, "release", question(folder, v=2.0, **private), Code.BUDGET)
    check_refused(folder, "introduce", question(folder, **{**private, "loss": "logistic"}), Code.LOSS)
    values = records.introduce_request(sorted(cells(folder)), {**PRIVATE, "node": "x0"})
    check_refused(folder, "introduce", values, Code.COLUMNS)


def test_nodes_with_few_rows_and_values_that_cannot_be_are_refused_without_a_word(folder: Path) -> None:
    edit(folder, "min-rows-per-node = ", "min-rows-per-node = 99 # ")
    check_refused(folder, "answer", question(folder), Code.FEW_ROWS)
    (folder / "data.csv").write_text((folder / "data.csv").read_text() + "4,Jane Doe,1,2\n")
    check_refused(folder, "answer", question(folder), Code.FILES)
    (folder / "data.csv").unlink()
    check_refused(folder, "introduce", records.introduce_request([], SETTINGS), Code.FILES)


def test_columns_that_the_policy_does_not_name_are_left_alone(folder: Path) -> None:
    answer = ask(folder, "answer", question(folder))
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "data.csv").write_text(
        "\n".join(f"{line},{'name' if k == 0 else 'Jane'}" for k, line in enumerate(lines))
    )
    assert ask(folder, "answer", question(folder)) == answer


def test_files_are_read_again_when_they_change_and_only_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from coterie.federation import responder

    read = []
    monkeypatch.setattr(responder.SiteFiles, "_read", _counting(responder.SiteFiles._read.__func__, read))
    site = Responder(folder)
    site.rehearse()
    for v in (0.0, 1.0):
        site.reply(RUN, "query.answer", question(folder, v=v))
    assert len(read) == 2  # with the strength of the rehearsal, and with that of the run
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "data.csv").write_text("\n".join([*lines, lines[-1]]))
    site.reply(RUN, "query.answer", question(folder))
    assert len(read) == 3


def _counting(read: Any, seen: list[Any]) -> classmethod:
    def counted(cls: Any, *arguments: Any) -> Any:
        seen.append(arguments)
        return read(cls, *arguments)

    return classmethod(counted)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"settings": "[]"},
        {"settings": json.dumps(SETTINGS)},
        {"settings": json.dumps(SETTINGS), "nodes": ["4"], "level": 1.0, "question": b"12345678", "width": 3},
        {"settings": json.dumps(SETTINGS), "nodes": [], "level": 1.0, "question": b"", "width": 0},
        {"settings": json.dumps(SETTINGS), "nodes": ["4"], "level": 1.0, "question": np.full(3, np.nan).tobytes()},
    ],
)
def test_garbage_gets_a_code(folder: Path, facts: dict[str, Any]) -> None:
    content = RecordDict({"facts": ConfigRecord(facts)})
    for kind in ("answer", "finish", "release", "run_my_code"):
        said = ask(folder, kind, content)
        assert set(said) <= {"site", "error", "value", "bound", "left", "reach", "w", "width", "nodes"}
        if kind != "finish" or facts.get("question") != b"":
            assert "error" in said or not facts.get("nodes", ["4"])
    assert ask(folder, "introduce", RecordDict())["error"] == Code.SETTINGS.value


def test_where_the_log_cannot_be_written_nothing_leaves(folder: Path) -> None:
    (folder / AUDIT).mkdir()
    reply = Responder(folder).reply(RUN, "query.answer", question(folder))
    assert dict(reply.config_records["facts"]) == {"site": "north", "error": Code.DISK.value}


def test_a_line_that_a_full_disk_cut_short_spoils_no_other(folder: Path) -> None:
    log = AuditLog(folder)
    log.note(RUN, "answer", b"one", b"reply")
    with (folder / AUDIT).open("a") as file:
        file.write('{"time": "2026-')
    assert not log.allows(b"two", 1)
    log.note(RUN, "answer", b"two", b"reply")
    assert [one.kind for one in entries(folder)] == ["answer", "answer"]
    assert AuditLog(folder).allows(b"two", 2)
    assert not AuditLog(folder).allows(b"three", 2)


def test_a_log_that_is_begun_anew_counts_too(folder: Path) -> None:
    log = AuditLog(folder)
    for k in range(3):
        log.note(RUN, "answer", bytes([k]), b"reply")
    assert log.allows(b"x", 4)
    (folder / AUDIT).rename(folder / "audit.old")
    log.note(RUN, "answer", b"y", b"reply")
    assert not log.allows(b"x", 4)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[problem]", "exposure = 1\n[problem]", r"\[columns\] exposure must be of type str"),
        ("[server]", "[sever]", "the sections are columns, problem, questions, server"),
        ("share-weights = true", "share-weight = true", r"\[questions\] has the keys"),
        ("share-weights = true", 'share-weights = "no"', r"\[questions\] share-weights must be of type bool"),
        ('"introduce"', '"introspect"', r"there is no question \['introspect'\]"),
        ("[server]", "[server", "Expected"),
        ("[server]", "[[server]]", r"\[server\] must be a section"),
        ("[problem]", "[problem]\ndelta = 1", r"\[problem\] delta must be of type float"),
    ],
)
def test_a_policy_with_a_mistake_is_no_policy(folder: Path, old: str, new: str, message: str) -> None:
    content = question(folder)
    edit(folder, old, new)
    with pytest.raises(RefusedError, match=message):
        Policy.read(folder)
    check_refused(folder, "answer", content, Code.NO_POLICY)
    (folder / POLICY).unlink()
    check_refused(folder, "answer", content, Code.NO_POLICY)


def test_a_rehearsal_tells_the_site_itself_what_is_wrong(folder: Path) -> None:
    Responder(folder).rehearse()
    edit(folder, "\nnodes = [", '\nnodes = ["99", ')
    with pytest.raises(RefusedError, match=r"site\.toml names node '99', of which there is no row"):
        Responder(folder).rehearse()
    (folder / "data.csv").write_text("node,x0,y\n4,much,1\n")
    with pytest.raises(RefusedError, match=r"data\.csv"):
        Responder(folder).rehearse()


def test_every_code_has_a_sentence_and_others_are_not_repeated() -> None:
    assert all(code.sentence and code.value in Code.says(code.value) for code in Code)
    assert Code.says("label 3.14") == Code.says(3.14) == "sent an error that this version does not know"


def test_policies_follow_the_problem(tmp_path: Path) -> None:
    problem = instance(loss=ct.Lasso(0.1), penalty=ct.SquaredVariation())
    write_sites(tmp_path, problem, np.arange(12) // 4, ("a", "b", "c"))
    policy = Policy.read(tmp_path / "sites" / "a")
    assert (policy.loss, policy.penalty) == ("lasso", "squared")


def test_a_site_with_few_nodes_or_without_the_privacy_that_it_asks_for_says_nothing(folder: Path) -> None:
    edit(folder, "min-nodes-per-site = ", "min-nodes-per-site = 99 # ")
    check_refused(folder, "answer", question(folder), Code.FEW_NODES)
    edit(folder, "min-nodes-per-site = 99", "min-nodes-per-site = 1")
    assert "error" not in ask(folder, "answer", question(folder))
    with (folder / POLICY).open("a") as file:
        file.write("\n[row-privacy]\nepsilon = 1.0\ndelta = 1e-5\nx-clip = 2.0\ny-clip = 2.0\n")
    check_refused(folder, "answer", question(folder), Code.PRIVACY)
    other = {
        "row_privacy_epsilon": 2.0,
        "row_privacy_delta": 1e-5,
        "row_privacy_x_clip": 2.0,
        "row_privacy_y_clip": 2.0,
    }
    check_refused(folder, "answer", question(folder, **other), Code.PRIVACY)


def test_boundary_weights_leave_with_no_more_digits_than_the_policy_says(folder: Path) -> None:
    exact = records.read_prox_reply(records._record(ask(folder, "answer", question(folder, v=1.0))))
    edit(folder, "round-to = 0.0", "round-to = 0.0625")
    reply = records.read_prox_reply(records._record(ask(folder, "answer", question(folder, v=1.0))))
    assert np.array_equal(reply.w, np.round(exact.w * 16) / 16)
    assert not np.array_equal(reply.w, exact.w)
    assert reply.value >= exact.bound + float(np.vdot(1.0 - exact.w, reply.w)) - exact.left * 10
