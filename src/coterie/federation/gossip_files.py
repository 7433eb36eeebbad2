"""What a site without a server has in its folder, besides data, edges and policy.

`gossip.toml` names all sites, the problem that they have agreed on, and where the neighbours are. `cut.csv` has the
edges that leave the site: node, site, neighbour and, if edges have weights, weight. `certificates` has NAME.crt of this
site and of every neighbour. `gossip.npz` is written by the run: from it a site that was killed goes on.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.federation.checkpoint import UNREADABLE
from coterie.federation.digest import data_digest, digest_of
from coterie.federation.gossip import Edge, Neighbourhood, Place
from coterie.federation.gossip_run import Progress, without_evidence
from coterie.federation.loop import FederationError
from coterie.federation.policy import Policy
from coterie.federation.refusals import Code, RefusedError
from coterie.federation.release_log import check_promise
from coterie.federation.site import Site
from coterie.federation.site_files import Settings, SiteFiles
from coterie.federation.transport.board import Board
from coterie.io.files import staged_file

GOSSIP, CUT, CERTIFICATES, MEMORY = "gossip.toml", "cut.csv", "certificates", "gossip.npz"
SHAPE: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "sites": list,
    "listen": str,
    "tol": float,
    "most-iterations": int,
    "hold-after": float,
    "checked": bool,
    "problem": dict,
    "neighbours": dict,
}


USUAL = {"hold-after": 60.0, "checked": True}  # what need not be written


@dataclass(frozen=True, eq=False)
class GossipFolder:
    """A site's folder, read and checked against its policy."""

    folder: Path
    config: Mapping[str, Any]
    files: SiteFiles
    hood: Neighbourhood
    policy: Policy
    run: str  # digest of all that sites must agree on
    data: str  # digest of all that the site has

    @classmethod
    def read(cls, folder: Path) -> GossipFolder:
        """Read a folder.

        Raises
        ------
        RefusedError, FederationError, BadSiteError
            The site's policy does not allow it, or a file cannot be used; the message says which.
        """
        folder = folder.absolute()
        config, policy = _config(folder), Policy.read(folder)
        settings = Settings.of({"alpha": 0.0, "ridge": 0.0, **config["problem"]})
        policy.check_question(0, "gossip", config["problem"])
        if policy.privacy is not None:
            raise RefusedError(Code.PRIVACY, "the policy asks for noisy weights, which need a server")
        if policy.row_privacy not in (None, settings.row_privacy):
            raise RefusedError(Code.PRIVACY, f"[problem] has {settings.row_privacy}, the policy {policy.row_privacy}")
        check_promise(folder, None)
        files = SiteFiles.read(folder, settings, policy.features)
        policy.check_rows(files.rows)
        hood = Neighbourhood.of(config["name"], _edges(folder, config))
        policy.check_nodes(node for site, node in hood.nodes if site == hood.name)
        rules = [config[key] for key in ("tol", "most-iterations", "checked")]
        agreed = (sorted(config["sites"]), settings, files.columns, *rules)
        data = digest_of(data_digest(files.nodes, files.problem), hood.graph.edges, hood.graph.weights).hex()
        return cls(folder, config, files, hood, policy, digest_of(agreed).hex(), data)

    def site(self) -> Site:
        """The site, asked about its boundary in the order of its neighbourhood."""
        boundary = [self.hood.nodes[k][1] for k in self.hood.own]
        return self.files.site(boundary, self.policy.round_to)

    @property
    def everyone(self) -> list[str]:
        """All sites, in the order of their names."""
        return sorted(self.config["sites"])

    def save(self, progress: Progress, board: Board) -> None:
        """Write all that the site needs to go on; the file is whole at any time."""
        assert progress.reply is not None
        said = [(kind, number, who) for (kind, number), messages in board.entries.items() for who in messages]
        facts = {"run": self.run, "data": self.data, "number": progress.number, "omega": float(progress.omega)}
        arrays: dict[str, Any] = {"w": progress.place.w, "u": progress.place.u, "w_hat": progress.reply.w}
        arrays |= {"anchor_w": progress.anchor.w, "anchor_u": progress.anchor.u, "far": progress.far}
        for k, (kind, number, who) in enumerate(said):
            arrays[f"message{k}"] = np.frombuffer(board.entries[kind, number][who], np.uint8)
        with staged_file(self.folder / MEMORY) as temporary:
            facts |= {"said": said, "standing": board.standing}
            np.savez(temporary, facts=np.array(json.dumps(facts)), **arrays)

    def restore(self) -> tuple[Progress, Board] | None:
        """Where the site was when it was killed; None where there is nothing, or something of another run.

        Raises
        ------
        FederationError
            When the site's data have changed since, or the file cannot be read.
        """
        path = self.folder / MEMORY
        if not path.exists():
            return None
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                facts = json.loads(str(file["facts"]))
                if facts["run"] != self.run:
                    return None
                place, anchor = Place(file["w"], file["u"]), Place(file["anchor_w"], file["anchor_u"])
                reply, omega, far = without_evidence(file["w_hat"]), float(facts["omega"]), file["far"]
                board = Board(self.everyone, tuple(map(int, facts["standing"])))
                for k, (kind, number, who) in enumerate(facts["said"]):
                    board.entries.setdefault((kind, number), {})[who] = file[f"message{k}"].tobytes()
        except UNREADABLE as error:
            raise FederationError(f"{path} cannot be read ({error}); {ANEW}") from None
        n, b, e = self.files.problem.n_features, len(self.hood.own), self.hood.graph.n_edges
        found = [array.shape for array in (place.w, anchor.w, reply.w, place.u, anchor.u, far)]
        fits = found == [(b, n)] * 3 + [(e, n)] * 2 + [(len(self.hood.nodes), n)]
        if facts["data"] != self.data or not fits or not omega > 0 or len(board.standing) != len(board.sites):
            raise FederationError(f"{path} is about other data; {ANEW}")
        return Progress(place, anchor, far, int(facts["number"]), omega, reply=reply), board

    def forget(self) -> None:
        """Remove what the run has kept: it has ended."""
        (self.folder / MEMORY).unlink(missing_ok=True)


ANEW = "remove it at every site to start anew"


def _config(folder: Path) -> dict[str, Any]:
    path = folder / GOSSIP
    try:
        config = {**USUAL, **tomllib.loads(path.read_text(encoding="utf-8"))}
        wrong = [key for key, kind in SHAPE.items() if not isinstance(config.get(key), kind)]
        if wrong or config.keys() - SHAPE:
            raise ValueError(f"{', '.join([*wrong, *(config.keys() - SHAPE)])}: missing, unknown or of another type")
        if config["name"] not in config["sites"] or len(set(config["sites"])) < len(config["sites"]):
            raise ValueError("sites must name all sites, this one among them, and each once")
    except (OSError, ValueError) as error:
        raise FederationError(f"{path}: {error}") from None
    return config


def _edges(folder: Path, config: Mapping[str, Any]) -> list[Edge]:
    path = folder / CUT
    try:
        with path.open(newline="", encoding="utf-8") as file:
            edges = [
                (row["node"], row["site"], row["neighbour"], float(row.get("weight") or 1.0))
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, ValueError) as error:
        raise FederationError(f"{path} needs the columns node, site and neighbour: {error!r}") from None
    unknown = sorted({site for _, site, *_ in edges} ^ set(config["neighbours"]))
    if unknown or not set(config["neighbours"]) <= set(config["sites"]) - {config["name"]}:
        raise FederationError(f"{path} and [neighbours] of {GOSSIP} must name the same other sites ({unknown})")
    return edges
