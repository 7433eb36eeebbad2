"""Why a site does not do what it is asked: a code that travels, and a sentence for people who read it.

A refusal that leaves a site is its code and nothing else: no value, no path, no name of a column. What it is about
stands in the site's own log.
"""

from __future__ import annotations

from enum import Enum


class Code(Enum):
    """The whole list; `sentence` completes "site 'north' …"."""

    sentence: str

    def __new__(cls, code: str, sentence: str) -> Code:
        member = object.__new__(cls)
        member._value_ = code
        member.sentence = sentence
        return member

    NO_POLICY = "no-policy", "has no site.toml that can be read"
    SERVER = "server", "has a policy for another server"
    RUN = "run", "has a policy for other runs"
    COLUMNS = "columns", "has a policy with other columns for node, label or features"
    LOSS = "loss", "has a policy with another loss"
    PENALTY = "penalty", "has a policy with another penalty"
    PRIVACY = "privacy", "has a policy with other differential privacy"
    BUDGET = "budget", "has no private release left, or has promised other settings before"
    SHARE = "share", "does not share the weights of its inner nodes; set share-weights = false"
    QUESTION = "question", "does not answer this kind of question"
    NODES = "nodes", "was asked about nodes that it does not open to the others"
    ENOUGH = "enough", "has answered as many questions as its policy allows"
    FEW_ROWS = "few-rows", "has a node with fewer labelled rows than its policy asks for"
    FEW_NODES = "few-nodes", "has fewer nodes than its policy asks for"
    SETTINGS = "settings", "was sent settings that cannot be used"
    UNREADABLE = "unreadable", "was sent a question that it cannot read"
    FILES = "files", "cannot use its files as they are"
    DISK = "disk", "cannot read or write in its folder"
    EXTRA = "extra", "lacks an optional part of Coterie"
    FAILED = "failed", "failed for a reason that only its own log names"

    @classmethod
    def says(cls, code: object) -> str:
        """The sentence for a code that has arrived, whoever wrote it."""
        known = next((one for one in cls if one.value == code), None)
        return "sent an error that this version does not know" if known is None else f"{known.sentence} ({known.value})"


class RefusedError(Exception):
    """A site does not answer; `code` may leave it, the message may not."""

    def __init__(self, code: Code, detail: str = "") -> None:
        super().__init__(detail or code.sentence)
        self.code = code
