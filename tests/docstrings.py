"""What a docstring of a public object owes its readers: the rules of numpydoc that this package keeps.

A summary sentence; every parameter with its type and, where it has one, its default; what is returned; what is raised
where the function itself raises; and an example, which the tests run.
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

UNDERLINED = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(?P<names>\*{0,2}\w[\w, *]*?)(?: : (?P<type>.+))?$")


class Entry(NamedTuple):
    """One item of a section such as Parameters."""

    type: str
    text: str


def sections(doc: str) -> dict[str, str]:
    """The text under each underlined heading; under "" what comes before the first."""
    parts = UNDERLINED.split(doc)
    return {"": parts[0].strip(), **dict(zip(parts[1::2], (part.strip("\n") for part in parts[2::2]), strict=True))}


def entries(section: str) -> dict[str, Entry]:
    """The items of a section by name; several names may share one."""
    found: dict[str, Entry] = {}
    names: list[str] = []
    for line in section.splitlines():
        match = ENTRY.match(line)
        if match:
            names = [name.strip().lstrip("*") for name in match["names"].split(",")]
            found |= dict.fromkeys(names, Entry(match["type"] or "", ""))
        elif line.strip():
            found |= {name: found[name]._replace(text=f"{found[name].text} {line.strip()}".strip()) for name in names}
    return found


class Documented:
    """A public object and its docstring."""

    def __init__(self, name: str, thing: Any) -> None:
        self.name, self.thing = name, thing

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def doc(self) -> dict[str, str]:
        return sections(inspect.getdoc(self.thing) or "")

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Those of the signature, without self; none of an enumeration, an exception or an abstract class."""
        plain = inspect.isclass(self.thing) and issubclass(self.thing, enum.Enum | Exception)
        if plain or not callable(self.thing):
            return []
        found = inspect.signature(self.thing).parameters.values()
        return [one for one in found if one.name not in ("self", "cls")]

    def wrong(self) -> Iterator[str]:
        """What the docstring lacks, one sentence each."""
        if not self.doc[""].split("\n\n")[0].strip().endswith((".", "}", "?")):
            yield "the first paragraph is not a sentence"
        yield from self._wrong_parameters()
        if inspect.isfunction(self.thing) and not self.doc.keys() & {"Returns", "Yields"} and self._returns():
            yield "it does not say what is returned"
        if inspect.isfunction(self.thing) and "Raises" not in self.doc and (raised := self._raised()):
            yield f"it does not say that {', '.join(sorted(raised))} is raised"

    def _wrong_parameters(self) -> Iterator[str]:
        documented = entries(self.doc.get("Parameters", ""))
        if inspect.isclass(self.thing):  # the fields of a record are its attributes
            documented = entries(self.doc.get("Attributes", "")) | documented
        for one in self.parameters:
            entry = documented.get(one.name)
            if entry is None or not entry.type:
                yield f"the parameter {one.name} is not there, or without its type"
            elif one.default is not inspect.Parameter.empty and "default=" not in entry.type:
                yield f"the parameter {one.name} has the default {one.default!r}, which is not said"
        known = {one.name for one in self.parameters}
        if unknown := entries(self.doc.get("Parameters", "")).keys() - known:
            yield f"there are no parameters {', '.join(sorted(unknown))}"

    def _returns(self) -> bool:
        annotation = inspect.signature(self.thing).return_annotation
        return annotation not in (None, "None", "NoReturn", inspect.Signature.empty)

    def _raised(self) -> set[str]:
        """The errors that the function raises in its own body."""
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.thing)))
        calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
        return {ast.unparse(call.func) for call in calls if isinstance(call, ast.Call)} - {"NotImplementedError"}


def methods(name: str, thing: Any) -> Iterator[Documented]:
    """The public methods of a class that this package defines."""
    for attribute in dir(thing) if inspect.isclass(thing) else ():
        member = inspect.getattr_static(thing, attribute)
        member = getattr(member, "__func__", member)
        if not attribute.startswith("_") and inspect.isfunction(member) and member.__module__.startswith("coterie."):
            yield Documented(f"{name}.{attribute}", member)
