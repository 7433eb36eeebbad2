"""How commands end when somebody interferes: Ctrl-C, a reader that has gone."""

import os
import signal
import subprocess
import sys
import threading

import polars as pl
import pytest
from commands import FIT, assert_one_line, rows, run, write

from coterie.cli.codes import ExitCode
from coterie.io.tables import write_batches
from coterie.kernels.interruption import is_pressed

COTERIE = (sys.executable, "-m", "coterie")


@pytest.fixture
def model(tmp_path):
    data, graph = write(tmp_path)
    fit = ("fit", data, *FIT, "--graph", graph, "--lam", "0.1", "--engine", "numpy", "--tol", "1e-3", "--quiet")
    assert run(*fit, "--out", tmp_path / "model").exit_code == 0
    return tmp_path / "model"


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_error(model):
    process = subprocess.Popen([*COTERIE, "inspect", model], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.slow
def test_ctrl_c_while_rows_come_in_is_one_line(model, tmp_path):
    words = ("predict", str(model), "-", "--out", str(tmp_path / "p.csv"))
    process = subprocess.Popen([*COTERIE, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdin.write("station,humidity,wind\n" * 100_000)  # more than a pipe holds: it has begun to read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    too_late = threading.Timer(100, process.kill)
    too_late.start()
    assert process.stderr.read() == "coterie: interrupted; nothing was written\n"
    too_late.cancel()
    assert process.wait() in (ExitCode.INTERRUPTED, -signal.SIGINT)  # a shell says 130 for both
    process.stdin.close()
    process.stderr.close()
    assert not (tmp_path / "p.csv").exists()


def _comes_true(condition, seconds=30):
    return any(condition() or threading.Event().wait(0.01) for _ in range(100 * seconds))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ctrl_c_while_a_table_is_written(tmp_path, ending):
    frame, written, noted = pl.DataFrame({"x": [1.0] * 1000}), [], []

    def batches():
        for k in range(1000):
            if k == 3:
                os.kill(os.getpid(), signal.SIGINT)
                noted.append(_comes_true(is_pressed))
            written.append(k)
            yield frame

    with pytest.raises(KeyboardInterrupt):
        write_batches(tmp_path / f"p.{ending}", batches(), dict(frame.schema))
    assert list(tmp_path.iterdir()) == []
    assert noted == [True]
    assert len(written) < 1000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_the_program_is_loaded():
    code = "import sys; sys.modules['coterie.cli'] = None\n"
    code += "import builtins, coterie.__main__ as m; real = builtins.__import__\n"
    code += "def pressed(name, *rest):\n if name == 'coterie.cli': raise KeyboardInterrupt\n return real(name, *rest)\n"
    code += "builtins.__import__ = pressed; m.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == ExitCode.INTERRUPTED
    assert done.stderr == "coterie: interrupted; nothing was written\n"


@pytest.mark.parametrize("option", ["--tol", "--time-limit", "--ridge"])
def test_what_is_no_number_is_the_fault_of_its_option(tmp_path, option):
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", "1", option, "nan", "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.USAGE, f"{option} nan: give a number")


def test_one_node_has_no_neighbours(tmp_path):
    data, _ = write(tmp_path, rows=rows().filter(pl.col("station") == "n2"))
    for command in (("fit", data, *FIT, "--lam", "1"), ("graph", data, "--node", "station")):
        result = run(*command, "--knn", "lat,lon:5", "--out", tmp_path / "out.csv")
        assert_one_line(result, ExitCode.BAD_GRAPH, "there is one node only, 'n2'")
