"""python -m coterie: the command line."""

from coterie.cli import app

if __name__ == "__main__":
    app(prog_name="coterie")
