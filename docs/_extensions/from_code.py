"""Tables that the code knows better than a page: commands and options, exit codes, statuses, a site's refusals."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click
import typer
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from coterie import Status
from coterie.cli import app as coterie
from coterie.cli.codes import ExitCode
from coterie.federation.refusals import Code

BAR = r"\|"  # inside a cell of a table


def commands() -> Iterator[str]:
    """A section for every command: what it does, its arguments and its options."""
    yield from described("coterie", typer.main.get_command(coterie))


def described(name: str, command: click.Command) -> Iterator[str]:
    """Lines about one command, then about those below it."""
    if isinstance(command, click.Group):
        for below, other in command.commands.items():
            if not other.hidden:
                yield from described(f"{name} {below}", other)
        return
    shown = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    yield from ("", f"## {name}", "", inspect.cleandoc(command.help or ""))
    yield from ("", "| option | what it is for |", "|---|---|")
    for one in shown:
        argument = one.param_type_name == "argument"
        names = one.metavar or one.human_readable_name if argument else ", ".join([*one.opts, *one.secondary_opts])
        yield f"| `{names}` | {' '.join(about(one)).replace('|', BAR)} |"


def about(one: Any) -> Iterator[str]:
    """What an option is for, what it can be, and what it is if it is not given."""
    yield " ".join((getattr(one, "help", None) or "").split())
    if choices := getattr(one.type, "choices", None):
        yield f"One of {', '.join(map(str, choices))}."
    if one.required:
        yield "Must be given."
    default = getattr(one.default, "value", one.default)
    if not one.required and not isinstance(default, bool | None) and not callable(default):
        yield f"Default: `{default}`."


def exit_codes() -> Iterator[str]:
    """How a command ended."""
    yield from ("| code | name | when |", "|---|---|---|")
    for code in ExitCode:
        yield f"| {code.value} | `{code.name}` | {code.sentence} |"


def statuses() -> Iterator[str]:
    """How a solve ended."""
    yield from ("| status | what it says |", "|---|---|")
    for status in Status:
        yield f"| `{status.name}` | {status.value} |"


def refusals() -> Iterator[str]:
    """What a site says instead of an answer."""
    yield from ("| code | the server's user reads: the site … |", "|---|---|")
    for code in Code:
        yield f"| `{code.value}` | {code.sentence} |"


TABLES = {"commands": commands, "exit-codes": exit_codes, "statuses": statuses, "refusals": refusals}


class FromCode(SphinxDirective):
    """Writes one of the tables, as Markdown, where it stands."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Parse the lines of the table."""
        lines = "\n".join(TABLES[self.arguments[0]]()).splitlines()
        self.content = StringList(lines, source=self.arguments[0])
        return self.parse_content_to_nodes(allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("from-code", FromCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
