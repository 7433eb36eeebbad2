"""The command line: `coterie`, or `python -m coterie`."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run a command. Ctrl-C ends it in a line, also while it is still being loaded."""
    try:
        from coterie.cli import app

        app(prog_name="coterie")
    except KeyboardInterrupt:
        print("coterie: interrupted; nothing was written", file=sys.stderr)
        raise SystemExit(128 + signal.SIGINT) from None


if __name__ == "__main__":
    main()
