import hashlib

from coterie.io.sources import sha256_of


def test_one_file_and_several(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(name)
    one, two = (hashlib.sha256(name.encode()) for name in "ab")
    assert sha256_of(tmp_path / "a.csv") == one.hexdigest()
    assert sha256_of(tmp_path) == hashlib.sha256(one.digest() + two.digest()).hexdigest()
