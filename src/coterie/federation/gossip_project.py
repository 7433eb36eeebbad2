"""Sites without a server on one machine: what each needs in its folder, made from an app of `coterie federate init`."""

from __future__ import annotations

import csv
import json
import os
import shutil
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from coterie.federation.fork_server import ForkServer, Program
from coterie.federation.gossip_files import CERTIFICATES, CUT, GOSSIP, MEMORY
from coterie.federation.gossip_life import RESULT
from coterie.federation.local import POLL, free_port
from coterie.federation.loop import FederationError
from coterie.federation.policy import Policy
from coterie.federation.site_files import PROBLEM, read_edges
from coterie.federation.transport.keys import write_own_certificates

MOST = 5000  # iterations
NOT_CONVERGED = 3  # the exit code of a site whose run ended without the gap that was asked for


def write_gossip(app: Path, sites: Sequence[Path], keys: Path, ports: Sequence[int]) -> None:
    """Write gossip.toml, cut.csv and certificates of every site, on loopback; the private keys go to `keys`."""
    config = tomllib.loads((app / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["flwr"]["app"]["config"]
    host = {node: site.name for site in sites for node in Policy.read(site).nodes}
    edges, weights = read_edges(app / "graph.csv")
    nowhere = [node for pair in edges for node in pair if node not in host]
    if nowhere:
        raise FederationError(f"the policy of no site opens node {nowhere[0]!r}, which graph.csv names")
    write_own_certificates(keys, [site.name for site in sites])
    address = {site.name: f"127.0.0.1:{port}" for site, port in zip(sites, ports, strict=True)}
    leaving: dict[str, list[tuple[str, str, str, float]]] = {site.name: [] for site in sites}
    for (a, b), weight in zip(edges, weights.tolist(), strict=True):
        leaving[host[a]].append((a, host[b], b, weight))
        leaving[host[b]].append((b, host[a], a, weight))
    for site in sites:
        near = sorted({other for _, other, *_ in leaving[site.name]})
        _write_site(site, config, address, near)
        with (site / CUT).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("node", "site", "neighbour", "weight"), *leaving[site.name]])
        (site / CERTIFICATES).mkdir(exist_ok=True)
        for name in (site.name, *near):
            shutil.copy(keys / f"{name}.crt", site / CERTIFICATES)


def _write_site(site: Path, config: Mapping[str, Any], address: Mapping[str, str], near: Sequence[str]) -> None:
    lines = [
        f"name = {json.dumps(site.name)}",
        f"sites = {json.dumps(sorted(address))}",
        f"listen = {json.dumps(address[site.name])}",
        f"tol = {float(config['tol'])!r}",
        f"most-iterations = {MOST}",
        "\n[problem]",
        *(f"{key} = {json.dumps(config[key])}" for key in PROBLEM if key in config),
        "\n[neighbours]",
        *(f"{json.dumps(name)} = {json.dumps(address[name])}" for name in near),
    ]
    (site / GOSSIP).write_text("\n".join(lines) + "\n", encoding="utf-8")


class LocalGossip:
    """A process for every site, on loopback; use it in a with statement. A site that is killed is started again."""

    def __init__(self, app: Path, sites: Sequence[Path], work: Path, fresh: bool = False) -> None:
        self.sites, self.work = sites, work
        for site in sites if fresh else ():
            (site / MEMORY).unlink(missing_ok=True)
        write_gossip(app, sites, work / "keys", [free_port() for _ in sites])

    def __enter__(self) -> LocalGossip:
        self.programs = ForkServer(os.environ, self.work / "programs.log")
        self.processes: dict[str, Program] = {}
        for site in self.sites:
            self.start(site)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.programs.close()

    def start(self, site: Path) -> None:
        """Start the process of a site."""
        command = ("coterie", "federate", "gossip", str(site), "--key", str(self.work / "keys" / f"{site.name}.key"))
        self.processes[site.name] = self.programs.start(self.log(site), *command)

    def log(self, site: Path) -> Path:
        return self.work / f"{site.name}.log"

    def result(self, see: Callable[[str], None]) -> dict[str, Any]:
        """Wait for the end; `see` is shown what the first site says. Return what all sites have written down.

        Raises
        ------
        FederationError
            When a site cannot take part.
        """
        seen = 0
        while [site for site in self.sites if self._lives(site)]:
            lines = self.log(self.sites[0]).read_text(encoding="utf-8").splitlines()
            for line in lines[seen:]:
                see(line.removeprefix("coterie: "))
            seen = len(lines)
            time.sleep(POLL)
        result: dict[str, Any] = json.loads((self.sites[0] / RESULT).read_text(encoding="utf-8"))
        return result

    def _lives(self, site: Path) -> bool:
        code = self.processes[site.name].poll()
        if code is not None and code < 0:
            self.start(site)
        elif code not in (None, 0, NOT_CONVERGED):
            lines = self.log(site).read_text(encoding="utf-8").strip().splitlines() or ["it said nothing"]
            raise FederationError(f"site {site.name!r} cannot take part: {lines[-1].removeprefix('coterie: ')}")
        return code is None or code < 0
