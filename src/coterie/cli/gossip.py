"""coterie federate gossip."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.codes import ExitCode
from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, end, plain_errors

if TYPE_CHECKING:
    from coterie.federation.gossip_certificate import Verdict


def gossip(
    folder: Annotated[
        Path | None, typer.Argument(help="The site's folder, with gossip.toml, cut.csv and certificates.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The private key of the site's certificate, as PEM.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew; all sites must.")] = False,
    local: Annotated[
        Path | None, typer.Option(help="Instead, all sites of an app on this machine: the folder of their folders.")
    ] = None,
) -> None:
    """Train without a server (experimental): this site talks to those that it shares edges with, and to nobody else.

    Every site gives this command. A site that was killed goes on where it was when the command is given again; the
    others wait for it. Its weights go to weights.csv in its folder, and the certificate of all sites to gossip.json.
    """
    with plain_errors():
        from coterie.federation.programs import QUIET, needs_flower

        needs_flower(QUIET)
        from coterie.federation.loop import FederationError
        from coterie.federation.refusals import RefusedError
        from coterie.federation.site_files import BadSiteError

        try:
            if local is not None and folder is None and key is None:
                _all_here(local.resolve(), fresh)
            elif local is None and folder is not None and key is not None and key.is_file():
                _one(folder, key, fresh)
            else:
                raise BadInputError("name a site's folder and, with --key, its private key; or --local SITES")
        except (FederationError, RefusedError, BadSiteError) as error:
            end(error, ExitCode.FAILED)
        except KeyboardInterrupt:
            end("interrupted; the same command goes on from here", ExitCode.INTERRUPTED)


def _one(folder: Path, key: Path, fresh: bool) -> None:
    from coterie.cli.screen import say
    from coterie.federation.gossip_life import live

    def see(number: int, verdict: Verdict) -> None:
        say(f"iteration {number}  gap {verdict.gap:.1e}", quiet=False)

    verdict, reached = live(folder, key.read_bytes(), partial(say, quiet=False), see, fresh)
    if not reached:
        end(f"the gap is {verdict.gap:.1e} after all iterations", ExitCode.NOT_CONVERGED)


def _all_here(local: Path, fresh: bool) -> None:
    from coterie.federation.gossip_project import LocalGossip

    sites = sorted(path for path in local.iterdir() if path.is_dir()) if local.is_dir() else []
    if not sites or not (local.parent / "graph.csv").exists():
        raise BadInputError(f"--local {local}: `coterie federate init` writes an app with a folder of sites in it")
    work = Path(tempfile.mkdtemp(prefix="coterie-gossip-"))
    with LocalGossip(local.parent, sites, work, fresh) as here:
        echo(f"{len(sites)} sites; logs in {work}", err=True)
        result = here.result(lambda line: echo(line, err=True))
    echo(f"Gap {result['gap']:.1e} ({result['status']}). Each site has its weights in weights.csv of its folder.")
    if result["status"] == "ITERATION_LIMIT":
        raise typer.Exit(ExitCode.NOT_CONVERGED)
