"""A SuperLink with safe defaults: Flower's own, behind a door that lets through what sites say and nothing else.

Flower serves three APIs at one port: Fleet (for sites; TLS and keys), Control (who submits an app has it run) and
Runtime (who asks first gets the tasks). Keys guard the first only. So the public port passes the calls of the Fleet API
that a site makes and no other (`door.py`), and the others are at a second port, on loopback, for whoever has the token
that is in the server's own folder (`control_token.py`). Like `fleet.py` this is for one version of Flower.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from flwr.common.constant import TRANSPORT_TYPE_GRPC_RERE
from flwr.supercore.constant import FLWR_IN_MEMORY_DB_NAME
from flwr.supercore.routers.runtime.tracing import RuntimeTracingMiddleware
from flwr.superlink.cli.flower_superlink import SuperLinkLifespan
from flwr.superlink.config_loader import SuperLinkLifespanConfig
from flwr.superlink.main import create_app
from flwr.superlink.routers.control.middlewares import (
    ControlAuthenticationMiddleware,
    ControlEventLogMiddleware,
    ControlLicenseMiddleware,
    ControlSensitiveResponseMiddleware,
)
from flwr.superlink.routers.fleet.middlewares import FleetEventLogMiddleware

from coterie.federation.fork_server import FORKS, fork
from coterie.federation.transport.control_token import LENGTH, ControlToken
from coterie.federation.transport.door import LOOPBACK, App, Door, Receive, Scope, Send
from coterie.federation.transport.parcels import handled
from coterie.federation.transport.registered_keys import RegisteredKeys, Told

IDLE = (  # middleware that does nothing but take time where no part of Flower Enterprise is installed
    ControlEventLogMiddleware,
    ControlLicenseMiddleware,
    FleetEventLogMiddleware,
    RuntimeTracingMiddleware,
)
OF_CONTROL = (ControlAuthenticationMiddleware, ControlSensitiveResponseMiddleware)  # they let all other calls pass
Tls = tuple[Path, Path, Path]  # the certificate authority, the server's certificate and its private key


def serve(
    public: tuple[str, int],
    control_port: int,
    tls: Tls,
    keys: Path,
    home: Path,
    told: Told,
) -> None:
    """Serve until a signal comes; state is in memory, as whoever starts anew registers the same keys again.

    Parameters
    ----------
    public : (str, int)
        Host and port for sites.
    control_port : int
        On loopback, for all that starts runs.
    tls : (Path, Path, Path)
        The certificate authority, the server's certificate and its private key.
    keys : Path
        A folder with the public keys of all sites; sites come and go with it.
    home : Path
        FLWR_HOME of those who may start runs: gets the token for the control port.
    told : callable
        Is given the id of each name, and what is new, before anyone is served and whenever the keys change.
    """
    for name in ("FLWR_INTERNAL_GRPC_CONTROL_API", "FLWR_INTERNAL_GRPC_FLEET_API"):
        os.environ.pop(name, None)  # they would open more ports
    token, secret = ControlToken(), secrets.token_bytes(LENGTH) if FORKS else None  # SuperExec would not know it
    config = _config(control_port, tls, token, secret)
    if secret is not None and fork() == 0:
        from coterie.federation.transport.server_apps import run_server_apps

        run_server_apps(config.control_address, tls[0], secret)
    app = create_app(config, SuperLinkLifespan)
    messages = _way_to_messages(app)
    registered = RegisteredKeys(app.state.linkstate_factory.state(), keys)
    told(registered.ids, registered.update())
    registered.watch(told)
    token.write(home, config.control_address)
    options = uvicorn.Config(
        Door(
            app,
            control_port,
            registered.have_signed,
            messages,
            partial(handled, app.state.linkstate_factory.state()),
        ),
        ssl_certfile=str(tls[1]),
        ssl_keyfile=str(tls[2]),
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        log_level="warning",
    )
    uvicorn.Server(options).run([_listening(*public), _listening(LOOPBACK, control_port)])


def _config(control_port: int, tls: Tls, token: ControlToken, secret: bytes | None) -> SuperLinkLifespanConfig:
    """A SuperLink that asks for keys, tokens and signatures, and keeps all in memory."""
    return SuperLinkLifespanConfig(
        control_address=f"{LOOPBACK}:{control_port}",
        health_server_address=None,
        host=LOOPBACK,
        port=control_port,
        insecure=False,
        certificates=tuple(path.read_bytes() for path in tls),
        superexec_auth_secret=secret,
        authn_plugin=token,
        event_log_plugin=None,
        fleet_event_log_plugin=None,
        enable_event_log=False,
        artifact_provider=None,
        enable_supernode_auth=True,
        fleet_api_type=TRANSPORT_TYPE_GRPC_RERE,
        fleet_api_address=None,
        simulation=False,
        ssl_ca_certfile=str(tls[0]),
        ssl_certfile=str(tls[1]),
        ssl_keyfile=str(tls[2]),
        database=FLWR_IN_MEMORY_DB_NAME,
        isolation="process" if FORKS else "subprocess",  # who runs ServerApps: we do, or Flower's SuperExec
        runtime_dependency_install=False,
    )


def _way_to_messages(app: FastAPI) -> App:
    """The app without the layers of Control, which let all other calls pass; idle ones are left out of the app, too."""
    layers = [layer for layer in app.user_middleware if layer.cls not in IDLE]
    app.user_middleware = [layer for layer in layers if layer.cls not in OF_CONTROL]
    way = app.build_middleware_stack()
    app.user_middleware = layers

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = app
        await way(scope, receive, send)

    return call


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener
