import pytest

from coterie.io.errors import TooLargeError
from coterie.io.memory import in_words, memory_available, require_memory, require_memory_to_solve


def test_memory_that_is_there(monkeypatch):
    there = memory_available()
    assert 1e6 < there < 1e15
    require_memory(1000, "rows.csv")
    monkeypatch.setattr("coterie.io.memory.memory_available", lambda: 10**9)
    with pytest.raises(TooLargeError, match=r"rows\.csv: .* about 2\.0 GB, and 1\.0 GB are available"):
        require_memory(2 * 10**9, "rows.csv")


@pytest.mark.parametrize(("n", "words"), [(3, "0.1 MB"), (2_340_000, "2.3 MB"), (10**10, "10.0 GB")])
def test_bytes_in_words(n, words):
    assert in_words(n) == words


def test_a_network_that_does_not_fit(monkeypatch):
    require_memory_to_solve(1000, 3000, 10)
    monkeypatch.setattr("coterie.io.memory.memory_available", lambda: 10**9)
    with pytest.raises(TooLargeError, match=r"9999 features at 1000 nodes and 30000 edges take at least 15\.2 GB"):
        require_memory_to_solve(1000, 30_000, 9999)
