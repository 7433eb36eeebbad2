"""coterie federate join."""

from __future__ import annotations

import hashlib
import logging
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.codes import ExitCode
from coterie.cli.errors import BadInputError, end, plain_errors

HERE = ("127.0.0.1", "localhost", "[::1]")


def join(
    superlink: Annotated[str, typer.Argument(help="Host and port of the server.")],
    folder: Annotated[Path, typer.Option(help="The site's folder: data.csv, edges.csv and site.toml.")],
    name: Annotated[str | None, typer.Option(help="The site's name.", show_default="that of the folder")] = None,
    root_certificates: Annotated[Path | None, typer.Option(help="ca.crt of the server: turns TLS on.")] = None,
    key: Annotated[Path | None, typer.Option(help="The site's private key, made by ssh-keygen -t ecdsa.")] = None,
) -> None:
    """Take part in a federation until Ctrl-C: answer what site.toml allows, with the Coterie that is installed here.

    One process that stays. It reads the site's files once, and again when they change. Nothing that the server sends is
    run; every message that leaves is a line in audit.jsonl of the folder.
    """
    with plain_errors():
        if root_certificates is None and superlink.rpartition(":")[0] not in HERE:
            raise BadInputError("--root-certificates: without it nothing is encrypted, which is for this machine only")
        from coterie.cli.screen import say
        from coterie.federation.programs import QUIET, needs_flower

        needs_flower(QUIET)
        from coterie.federation.refusals import RefusedError
        from coterie.federation.resident import attend
        from coterie.federation.responder import Responder
        from coterie.federation.transport.fleet import Fleet, NeverError

        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
        certificate = "" if root_certificates is None else hashlib.sha256(root_certificates.read_bytes()).hexdigest()
        responder, memory = Responder(folder, name, certificate), None if key is None else folder / ".node"
        try:
            responder.rehearse()
            attend(lambda: Fleet(superlink, root_certificates, key, memory), responder, partial(say, quiet=False))
        except (RefusedError, NeverError) as error:
            end(error, ExitCode.FAILED)
        except KeyboardInterrupt:
            end(f"{responder.name} has left", ExitCode.INTERRUPTED)
