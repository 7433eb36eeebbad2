"""A site without a server, from its folder to its weights: what `coterie federate gossip` does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from coterie.federation.audit import AuditLog
from coterie.federation.gossip_certificate import Verdict
from coterie.federation.gossip_files import CERTIFICATES, GossipFolder
from coterie.federation.gossip_run import GossipRun, Progress
from coterie.federation.refusals import Code, RefusedError
from coterie.federation.site_files import write_weights
from coterie.federation.transport.board import Board
from coterie.federation.transport.grpc_peers import GrpcPeers, read_neighbour
from coterie.solver.pace import expecting

RESULT = "gossip.json"
MANY = 200  # iterations, about
LOGGED = {"weights": "gossip", "claims": "claims"}  # what messages are in the log; all others are of the tree


def live(
    folder: Path, key: bytes, say: Callable[[str], None], see: Callable[[int, Verdict], None], fresh: bool = False
) -> tuple[Verdict, bool]:
    """Take part from the first meeting to the end; return the certificate, and whether its gap was asked for.

    Raises
    ------
    FederationError, RefusedError, BadSiteError
    """
    read = GossipFolder.read(folder)
    if fresh:
        read.forget()
    name, certificates = read.hood.name, read.folder / CERTIFICATES
    former = read.restore()
    board = Board(read.everyone) if former is None else former[1]
    neighbours = {
        who: read_neighbour(address, certificates / f"{who}.crt") for who, address in read.config["neighbours"].items()
    }
    mine = read_neighbour(read.config["listen"], certificates / f"{name}.crt")
    tls, patience = (key, mine.certificate, neighbours), read.config["hold-after"]
    peers = GrpcPeers(name, mine.address, *tls, read.run, _noting(read, board), say, patience, board)
    with expecting(MANY), peers:
        site = read.site()

        def save(progress: Progress) -> None:
            board.keep = lambda: keep(read, progress, board)
            board.keep()

        ranks = {site: k for k, site in enumerate(read.everyone)}
        run = GossipRun(site, read.hood, peers, ranks, save, read.config["checked"])
        progress = run.start() if former is None else former[0]
        if former is not None:
            say(f"{name} goes on from iteration {progress.number}")
        tol, most = read.config["tol"], read.config["most-iterations"]
        request, verdict, number = run.until(tol, most, progress, see)
        write_weights(read.folder / "weights.csv", read.files.nodes, read.files.weight_names, site.weights(request))
        _write_result(read, verdict, number)
    read.forget()
    return verdict, verdict.gap <= tol


def keep(read: GossipFolder, progress: Progress, board: Board) -> None:
    """Write down where the site is, or leave: who cannot come back to what it says must not say it.

    Raises
    ------
    RefusedError
        When the disk is full, say. What was written before is still there, and the others can wait.
    """
    try:
        read.save(progress, board)
    except OSError as error:
        why = f"{read.folder} cannot be written to ({error.strerror})"
        raise RefusedError(Code.DISK, f"{why}; the same command goes on from what was written last") from None


def _noting(read: GossipFolder, board: Board) -> Callable[[str, int, bytes], None]:
    """Writes a line of the audit log for every message, and counts iterations."""
    audit, run_id = AuditLog(read.folder), int(read.run[:15], 16)

    def note(kind: str, number: int, content: bytes) -> None:
        asked = f"{read.run} {read.data} {board.standing} {kind} {number}".encode()
        if kind == "weights" and not audit.allows(asked, read.policy.most):
            raise RefusedError(Code.ENOUGH)
        audit.note(run_id, LOGGED.get(kind, "tree"), asked, content)

    return note


def _write_result(read: GossipFolder, verdict: Verdict, number: int) -> None:
    result = {
        "status": verdict.status.name if verdict.gap <= read.config["tol"] else "ITERATION_LIMIT",
        "objective": verdict.objective,
        "dual_bound": verdict.bound.value,
        "gap": verdict.gap,
        "condition": verdict.condition,
        "held": list(verdict.away),
        "iterations": number,
        "sites": sorted(read.config["sites"]),
    }
    (read.folder / RESULT).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
