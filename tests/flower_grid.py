"""A Grid in this process: messages go through the real responder, or ClientApp, and Flower's own serialisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.supercore.task_identity import TaskIdentity

from coterie.federation.client_app import app
from coterie.federation.responder import Responder

CONFIG = {
    "loss": "squared", "alpha": 0.0, "ridge": 0.0, "penalty": "l1", "lam": 0.01, "node": "node", "label": "y",
    "sites": 3, "tol": 1e-6, "max-rounds": 200, "timeout": 3.0, "wait": 3.0, "hold-after": 3, "on-bad-site": "stop",
    "share-weights": True, "resume": False, "privacy-noise": 0.0, "privacy-clip": 1.0, "privacy-rounds": 4,
    "privacy-delta": 1e-5,
}  # fmt: skip

Change = Callable[[str, int, Message], Message | None]  # (site, how many answers before, reply) → what arrives


class InProcessGrid:
    """SuperNodes by id, each with the folder of its site; `change` may spoil replies, or lose them (None).

    Sites are residents, which read their files once; `stock`: a ClientApp is started for every message.
    """

    def __init__(
        self, folders: Iterable[Path], config: dict[str, Any], change: Change | None = None, stock: bool = False
    ) -> None:
        self.folders = {10 + k: folder for k, folder in enumerate(folders)}
        self.config, self.change, self.stock = config, change, stock
        self.residents: dict[Path, Responder] = {}
        self.sent: list[Message] = []
        self.received: list[Message] = []
        self.replies = dict.fromkeys(self.folders, 0)
        self.waiting: dict[str, Message] = {}
        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1  # what Flower does when it starts an app

    def get_node_ids(self) -> Iterable[int]:
        return list(self.folders)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids = []
        for message in messages:
            number = str(len(self.sent))
            message.metadata.__dict__["_message_id"] = number
            message = _travelled(message)
            self.sent.append(message)
            ids.append(number)
            node = message.metadata.dst_node_id
            if node not in self.folders:
                continue  # a SuperNode that is gone
            reply = self._reply(node, message)
            reply.metadata.__dict__["_reply_to_message_id"] = number
            arrives = _travelled(reply)
            if self.change is not None and message.metadata.message_type in ("query.answer", "query.release"):
                changed = self.change(self.folders[node].name, self.replies[node], arrives)
                self.replies[node] += 1
                if changed is None:
                    continue
                arrives = changed
            self.received.append(arrives)
            self.waiting[number] = arrives
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self.waiting.pop(number) for number in message_ids if number in self.waiting]

    def _reply(self, node: int, message: Message) -> Message:
        folder = self.folders[node]
        if self.stock:
            return app(message, Context(1, node, {"folder": str(folder)}, RecordDict(), self.config))
        resident = self.residents.setdefault(folder, Responder(folder))
        content = resident.reply(message.metadata.run_id, message.metadata.message_type, message.content)
        return Message(content, reply_to=message)


def _travelled(message: Message) -> Message:
    """The message as it comes out of Flower's serialisation."""
    message.content = recorddict_from_proto(recorddict_to_proto(message.content))
    return message
