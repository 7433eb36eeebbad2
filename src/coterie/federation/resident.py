"""A resident site: one process that stays, answers with the installed Coterie, and runs nothing that arrives.

It reads its files once, and again when they change (`responder.py`), so that a reply costs the work and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

from coterie.federation.responder import Responder
from coterie.federation.transport.fleet import Fleet, FleetError, NeverError

FIRST, AGAIN = 0.2, 3.0  # seconds until a lost SuperLink is looked for again, the first time and at most
SOON, LATE = 0.03, 1.0  # seconds between two looks for a message, likewise
GROWTH = 1.25  # from one time to the next: a quarter of the time waited so far, so that little of it is in vain


def attend(connect: Callable[[], Fleet], responder: Responder, say: Callable[[str], None]) -> NoReturn:
    """Answer for ever; a SuperLink that goes away is looked for until it comes back.

    Raises
    ------
    NeverError
        When it does not help to try again.
    """
    said, pause = "", FIRST
    while True:
        try:
            with connect() as fleet:
                said, pause = "", FIRST
                say(f"{responder.name} takes part as node {fleet.node.node_id}")
                _answer(fleet, responder)
        except NeverError:
            raise
        except FleetError as error:
            if str(error) != said:
                said = str(error)
                say(f"{said}; trying again, after a while every {AGAIN:.0f} s")
            time.sleep(pause)
            pause = min(GROWTH * pause, AGAIN)


def _answer(fleet: Fleet, responder: Responder) -> NoReturn:
    pause = SOON
    while True:
        began = time.monotonic()
        message = fleet.receive()
        if message is None:
            time.sleep(max(pause - (time.monotonic() - began), 0.0))  # a server of Coterie lets the look itself wait
            pause = min(pause * GROWTH, LATE)
            continue
        content = responder.reply(message.metadata.run_id, message.metadata.message_type, message.content)
        fleet.send(message, content, time.monotonic() - began)
        pause = SOON
