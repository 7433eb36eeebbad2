"""coterie federate."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.audit import audit
from coterie.cli.codes import ExitCode
from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, end, plain_errors
from coterie.cli.gossip import gossip
from coterie.cli.join import join
from coterie.cli.serve import serve

if TYPE_CHECKING:
    from collections.abc import Mapping

federate = typer.Typer(
    no_args_is_help=True, help="Train across sites that keep their rows, with Flower (coterie[flower])."
)


@federate.command()
def init(
    folder: Annotated[
        Path | None, typer.Argument(help="A folder that does not exist yet: letters, digits and hyphens.")
    ] = None,
    site: Annotated[
        Path | None, typer.Option(help="Write site.toml into this folder with data, and nothing else.")
    ] = None,
    node: Annotated[str, typer.Option(help="With --site: the column of node ids.")] = "node",
    label: Annotated[str, typer.Option(help="With --site: the column of labels.")] = "y",
) -> None:
    """Write a Flower app that is ready to run: configuration, apps, three example sites, the graph between them.

    With --site: write the policy of one site, to be read and changed by whoever answers for its data.
    """
    with plain_errors():
        if (folder is None) == (site is None):
            raise BadInputError("name a folder for an app, or --site FOLDER")
        if site is not None:
            _write_policy(site, node, label)
            return
        assert folder is not None
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", folder.name):
            raise BadInputError(f"{folder.name!r}: a Flower app has a name of letters, digits and hyphens")
        if folder.exists():
            raise BadInputError(f"{folder} exists; name a new folder")
        from coterie.federation.project import write_project

        write_project(folder, folder.name)
        echo(f"Wrote {folder}. Run it on this machine:  coterie federate run --local {folder / 'sites'}")


def _write_policy(site: Path, node: str, label: str) -> None:
    """Write a policy with the columns that the data have, and no node that may be asked about."""
    from coterie.federation.policy import write_policy
    from coterie.federation.site_folder import POLICY, find_table
    from coterie.io.rows import Columns

    table = find_table(site, "data")
    if table is None:
        raise BadInputError(f"{site} has neither data.parquet nor data.csv")
    if (site / POLICY).exists():
        raise BadInputError(f"{site / POLICY} exists; remove it for a new one")
    write_policy(site, Columns.of(table, node, label).features, [], node=node, label=label, share_weights=False)
    echo(f"Wrote {site / POLICY}. Read it, and name the nodes that have a neighbour at another site.")


@federate.command()
def run(
    local: Annotated[Path, typer.Option(help="Folder with a folder for every site; its parent holds the app.")],
    app: Annotated[Path | None, typer.Option(help="The app's folder.", show_default="the parent of --local")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the model.", show_default="model, in the app")] = None,
    tol: Annotated[float | None, typer.Option(help="Certified gap to reach.", show_default="the app's")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew, even where a checkpoint is left.")] = False,
) -> None:
    """Run a federation on this machine: a server and a process per site, with TLS and keys, on loopback only."""
    with plain_errors():
        app = (local.resolve().parent if app is None else app).resolve()
        sites = _folders(local, app)
        model = (app / "model" if out is None else out).resolve()
        config: dict[str, Any] = {"sites": len(sites), "graph": str(app / "graph.csv"), "out": str(model)}
        config |= {"resume": not fresh} | ({} if tol is None else {"tol": tol})
        _run(app, sites, model, config)


def _run(app: Path, sites: list[Path], model: Path, config: Mapping[str, Any]) -> None:
    from coterie.federation.local import LocalError, LocalFederation

    work = Path(tempfile.mkdtemp(prefix="coterie-federation-"))
    try:
        with LocalFederation(app, sites, work) as federation:
            echo(f"{len(sites)} sites; logs in {work}", err=True)
            last = federation.run(config, model, _show)
    except LocalError as error:
        end(error, ExitCode.FAILED)
    except KeyboardInterrupt:
        end(f"interrupted; the same command continues from the checkpoint in {model}", ExitCode.INTERRUPTED)
    if last["held"]:
        echo(f"coterie: warning: kept the last weights of {', '.join(last['held'])}, which stopped answering", err=True)
    echo(f"{_quality(last)} ({last['done']}). Model: {model}")


def _folders(local: Path, app: Path) -> list[Path]:
    """The sites, checked before anything is started."""
    from coterie.federation.site_folder import POLICY, find_table

    sites = sorted(path for path in local.iterdir() if path.is_dir()) if local.is_dir() else []
    if not sites:
        raise BadInputError(f"--local {local}: there is no folder with a site in it")
    for name in ("pyproject.toml", "graph.csv"):
        if not (app / name).exists():
            raise BadInputError(f"{app} has no {name}; `coterie federate init` writes an app")
    for site in sites:
        if find_table(site, "data") is None:
            raise BadInputError(f"{site} has neither data.parquet nor data.csv")
        if not (site / POLICY).exists():
            raise BadInputError(f"{site} has no {POLICY}; `coterie federate init --site {site}` writes one")
    return sites


def _show(line: Mapping[str, Any]) -> None:
    if "number" in line:
        where = f"round {line['number']:3d}  {_gap(line)}  sites {line['present']} of {line['sites']}"
        echo(f"{where}  {line['seconds']:.1f} s", err=True)
    elif "warning" in line:
        echo(f"coterie: warning: {line['warning']}", err=True)


def _quality(last: Mapping[str, Any]) -> str:
    """The gap that was reached; or, with differential privacy, how private the run was."""
    private = last["privacy"]
    if private is None:
        return _gap(last).capitalize()
    if "certificate" in private:
        of_rows = f"of single rows, ε = {private['epsilon']:.3g} for δ = {private['delta']:g}"
        return f"{_gap(last).capitalize()} of the noisy problem; privacy {of_rows}"
    return f"No certificate; ε = {private['epsilon']:.3g} for δ = {private['delta']:g}"


def _gap(line: Mapping[str, Any]) -> str:
    """The gap, where one is proven."""
    return "no gap" if line["gap"] is None else f"gap {line['gap']:.1e}"


for command in (join, serve, gossip, audit):
    federate.command()(command)
