"""Is the installed package whole? Run by `make wheel`, with nothing but the wheel and what it depends on."""

import subprocess
import sys
import sysconfig
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np

import coterie as ct

HERE = Path(sysconfig.get_path("purelib"))

assert Path(ct.__file__).is_relative_to(HERE), f"{ct.__file__} is not the installed package"
for name in ("py.typed", "report/templates/report.html", "report/templates/report.css", "report/templates/report.js"):
    assert files("coterie").joinpath(name).is_file(), name
for name in ct.__all__:
    assert getattr(ct, name).__doc__, name

X, nodes = np.random.default_rng(0).standard_normal((12, 2)), np.repeat([0, 1, 2], 4)
model = ct.NetworkedLinearRegression(ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)]), lam=0.1)
model.fit(X, X @ [1.0, 2.0], groups=nodes)
assert model.gap_ <= 1e-6
with tempfile.TemporaryDirectory() as folder:
    model.save(folder)
    assert (ct.load(folder).predict(X, groups=nodes) == model.predict(X, groups=nodes)).all()

command = [Path(sys.executable).parent / "coterie", "--version"]
shown = subprocess.run(command, capture_output=True, text=True, check=True)
assert shown.stdout == f"coterie {ct.__version__}\n", shown.stdout
print(f"coterie {ct.__version__} works as installed in {HERE}")
