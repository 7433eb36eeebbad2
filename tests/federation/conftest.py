"""Every round solves a problem at every site."""

import pytest


@pytest.fixture(autouse=True)
def _compiled(compiled: None) -> None:
    """Kernels are compiled from the first round on, as they would be before long."""
