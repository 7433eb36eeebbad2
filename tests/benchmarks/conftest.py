"""The benchmarks are no part of the package: put the repository on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
