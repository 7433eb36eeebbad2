"""coterie federate serve."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, plain_errors

if TYPE_CHECKING:
    from collections.abc import Mapping


def serve(
    keys: Annotated[Path, typer.Option(help="Folder with NAME.pub of every site: who is in it may take part.")],
    ca: Annotated[Path, typer.Option(help="The certificate authority that sites trust: ca.crt.")],
    certificate: Annotated[Path, typer.Option(help="The server's certificate, valid for 127.0.0.1 as well.")],
    private_key: Annotated[Path, typer.Option(help="Its private key.")],
    state: Annotated[Path, typer.Option(help="Folder for Flower's own files, and for who is who.")] = Path("superlink"),
    host: Annotated[str, typer.Option(help="Where sites reach the server.")] = "0.0.0.0",
    port: Annotated[int, typer.Option(help="The port for sites.")] = 8000,
    control_port: Annotated[int, typer.Option(help="The port on loopback from which runs are started.")] = 8001,
) -> None:
    """Serve a federation: a SuperLink whose public port is for authenticated sites only.

    Sites reach the Fleet API, over TLS and with a key from --keys, which is watched: a key that is put there may take
    part at once, and one that is removed no more. Whatever starts runs or gets tasks is at the control port, on
    loopback, for whoever can read --state: the user who runs this command, and nobody else.
    """
    with plain_errors():
        for option, path in (("--ca", ca), ("--certificate", certificate), ("--private-key", private_key)):
            if not path.is_file():
                raise BadInputError(f"{option} {path}: there is no such file")
        if port == control_port:
            raise BadInputError("--control-port must be another than --port")
        from coterie.federation.programs import QUIET, needs_flower
        from coterie.federation.roster import ROSTER, write_roster

        home, roster = (state / "flwr").resolve(), (state / "roster.json").resolve()
        home.mkdir(parents=True, exist_ok=True)
        state.chmod(0o700)
        needs_flower({**QUIET, "FLWR_HOME": str(home), ROSTER: str(roster)})
        from coterie.federation.local import write_connection
        from coterie.federation.transport.superlink import serve as serve_until_signal

        def told(ids: Mapping[str, int], what: str) -> None:
            write_roster(roster, ids)
            echo(f"coterie: {what}", err=True)

        write_connection(home, control_port, ca.resolve())
        echo(f"coterie: sites at {host}:{port}; runs are started on this machine:", err=True)
        echo(f"FLWR_HOME={home} flwr run APP coterie --stream --run-config 'sites=N …'", err=True)
        try:
            tls = (ca.resolve(), certificate.resolve(), private_key.resolve())
            serve_until_signal((host, port), control_port, tls, keys, home, told)
        except ValueError as error:
            raise BadInputError(str(error)) from None
        finally:
            os.environ.pop(ROSTER, None)
