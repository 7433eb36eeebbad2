"""The ClientApp: a site behind a stock SuperNode.

Flower starts a process for every message, so nothing is kept between two of them; all that a reply needs is in the
message and in the site's folder. A SuperNode runs whatever app the operator of the SuperLink sends it, this one or
another: a site that wants to run nothing but its own Coterie joins as a resident (`resident.py`).
"""

from __future__ import annotations

from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from coterie.federation.responder import Responder

app = ClientApp()


def reply(message: Message, context: Context) -> Message:
    """Reply for the folder that the SuperNode was started with."""
    responder = Responder(Path(str(context.node_config["folder"])))
    content = responder.reply(message.metadata.run_id, message.metadata.message_type, message.content)
    return Message(content, reply_to=message)


for kind in ("introduce", "answer", "release", "finish"):
    app.query(kind)(reply)
