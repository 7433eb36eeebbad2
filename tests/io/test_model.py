import json
import os

import numpy as np
import pytest

from coterie.io import model as models
from coterie.io.errors import ModelFileError
from coterie.io.model import read_model, write_model

ARRAYS = {"w": np.arange(6.0).reshape(3, 2), "edges": np.array([[0, 1]]), "nothing": np.empty((0, 2))}


def test_there_and_back(tmp_path):
    record = {"a": 1, "nan": np.nan, "b": np.float64(2.5), "c": (1, "é"), "d": np.array([1, 2]), "e": {"f": None}}
    write_model(tmp_path / "m", record, ARRAYS)
    back, arrays = read_model(tmp_path / "m")
    expected = {"a": 1, "nan": "nan", "b": 2.5, "c": [1, "é"], "d": [1, 2], "e": {"f": None}}
    assert {name: back[name] for name in expected} == expected
    assert back["schema"] == 3
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert np.array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert len(list((tmp_path / "m").iterdir())) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_what_json_cannot_hold_is_named_and_nothing_is_written(tmp_path):
    with pytest.raises(TypeError, match=r"cannot hold \{1\}, of type set"):
        write_model(tmp_path / "m", {"bad": {1}}, ARRAYS)
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_replaced_in_one_step(tmp_path):
    write_model(tmp_path / "m", {"name": "old"}, ARRAYS)
    (tmp_path / "m" / "README.txt").write_text("mine")
    write_model(tmp_path / "m", {"name": "new"}, {"w": np.zeros(3)})
    record, arrays = read_model(tmp_path / "m")
    assert record["name"] == "new"
    assert list(arrays) == ["w"]
    assert (tmp_path / "m" / "README.txt").read_text() == "mine"
    assert len(list((tmp_path / "m").iterdir())) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_failure_between_the_two_files_leaves_the_old_model(tmp_path, monkeypatch, fails_at):
    write_model(tmp_path / "m", {"name": "old"}, ARRAYS)
    real, calls = os.replace, []

    def replace(source, target):
        calls.append(target)
        if len(calls) == fails_at:
            raise OSError("no space left on device")
        real(source, target)

    monkeypatch.setattr("coterie.io.files.os.replace", replace)
    with pytest.raises(OSError, match="no space left"):
        write_model(tmp_path / "m", {"name": "new"}, {"w": np.zeros(3)})
    monkeypatch.undo()
    record, arrays = read_model(tmp_path / "m")
    assert record["name"] == "old"
    assert np.array_equal(arrays["w"], ARRAYS["w"])
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    write_model(tmp_path / "m", {"name": "new"}, {"w": np.ones(3)})
    assert len(list((tmp_path / "m").iterdir())) == 2


def test_a_model_that_is_replaced_while_it_is_read(tmp_path, monkeypatch):
    write_model(tmp_path / "m", {"name": "old"}, ARRAYS)
    real, reads = models._all_arrays, []

    def read_arrays(path, record):
        reads.append(record["name"])
        if len(reads) == 1:
            write_model(tmp_path / "m", {"name": "new"}, {"w": np.zeros(3)})
        return real(path, record)

    monkeypatch.setattr(models, "_all_arrays", read_arrays)
    record, arrays = read_model(tmp_path / "m")
    assert reads == ["old", "new"]
    assert record["name"] == "new"
    assert list(arrays) == ["w"]


def damage_arrays(folder, change):
    file = next(folder.glob("arrays-*"))
    file.write_bytes(change(file.read_bytes()))


def as_pipe(file):
    file.unlink()
    os.mkfifo(file)


def as_loop(file):
    file.unlink()
    file.symlink_to(file.name)


def edit(folder, **changes):
    record = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**record, **changes}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda m: (m / "model.json").write_text("{"), "model is damaged"),
        (lambda m: (m / "model.json").write_bytes(b"\xff\xfe"), "model is damaged"),
        (lambda m: (m / "model.json").write_text("[1]"), "is not a coterie model"),
        (lambda m: (m / "model.json").write_text("{}"), "is not a coterie model"),
        (lambda m: (m / "model.json").unlink(), "is not a model folder: it has no model.json"),
        (lambda m: edit(m, schema=6), r"newer Coterie \(schema 6, this one reads up to 5\)"),
        (lambda m: edit(m, gap=0.0), r"model\.json: the model is damaged, the file is not what was written"),
        (lambda m: edit(m, sha256=None), "is not what was written"),
        (lambda m: as_pipe(m / "model.json"), "is not a model folder"),
        (lambda m: as_loop(m / "model.json"), "is not a model folder"),
        (lambda m: edit(m, schema="two"), "damaged .its schema is 'two'"),
        (lambda m: edit(m, schema=2, arrays=None), "its arrays cannot be read"),
        (lambda m: edit(m, schema=2, arrays={"file": "x", "sha256": ""}), "its arrays cannot be read"),
        (lambda m: next(m.glob("arrays-*")).unlink(), "its arrays cannot be read"),
        (lambda m: damage_arrays(m, lambda b: b[:-8]), "is not what was written"),
        (lambda m: damage_arrays(m, lambda b: b[:-1] + bytes([b[-1] ^ 1])), "is not what was written"),
        (lambda m: damage_arrays(m, lambda b: b""), "is not what was written"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path, damage, message):
    write_model(tmp_path / "m", {}, ARRAYS)
    damage(tmp_path / "m")
    with pytest.raises(ModelFileError, match=message) as caught:
        read_model(tmp_path / "m")
    assert str(tmp_path / "m") in str(caught.value)


def test_what_is_not_a_folder(tmp_path):
    with pytest.raises(ModelFileError, match="not a model folder"):
        read_model(tmp_path / "nowhere")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelFileError, match="not a model folder"):
        read_model(tmp_path / "file")
    with pytest.raises(NotADirectoryError, match="is a file"):
        write_model(tmp_path / "file", {}, ARRAYS)
    assert (tmp_path / "file").read_text() == "mine"
