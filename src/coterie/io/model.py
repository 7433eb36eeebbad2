"""A model on disk: a folder with `model.json` and the arrays it names, in safetensors. No pickle.

The arrays' file is named after its own content, and the JSON file, which names it with its checksum, is put in
place last: a reader sees the old model or the new one, never a mixture. The JSON file has a checksum of itself, so that
nobody changes a gap or swaps names of nodes by hand without notice. Where the ranks of an MPI job wrote it, each wrote
a file of arrays of its own (`model_parts.py`), and the JSON file names them all.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coterie.io.errors import ModelFileError
from coterie.io.files import staged
from coterie.io.model_parts import join_parts
from coterie.problem.arrays import Array

FORMAT = "coterie model"
SCHEMA, LATEST = 3, 5  # what is written where a record does not ask for more, and what can be read
SIGNED = 3  # the first schema whose record has a checksum
RECORD = "model.json"


def write_model(path: Path, record: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a model to the folder `path`, which is replaced in one step where it holds a model already.

    record : what JSON can hold; numbers that are not finite become the strings "nan", "inf" and "-inf".
    """
    with staged(path) as folder:
        named = write_arrays(folder, arrays)
        write_record(folder, record, named)
    remove_others(path, [named["file"]])


def write_arrays(folder: Path, arrays: Mapping[str, Array], of: str = "") -> dict[str, str]:
    """Write arrays to a file that is named after its content; return its name and checksum."""
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    digest = hashlib.sha256(content).hexdigest()
    file = f"arrays-{of}{digest[:16]}.safetensors"
    (folder / file).write_bytes(content)
    return {"file": file, "sha256": digest}


def write_record(folder: Path, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write what names the files of arrays."""
    whole = plain({"format": FORMAT, "schema": SCHEMA, "arrays": arrays, **record})
    signed = {**whole, "sha256": _checksum(whole)}
    text = json.dumps(signed, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def remove_others(path: Path, kept: Iterable[str]) -> None:
    """Remove arrays of models that were here before."""
    kept = set(kept)
    for old in path.glob("arrays-*.safetensors"):
        if old.name not in kept:
            old.unlink()


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what :func:`write_model` was given, or say why the folder cannot be read."""
    record = _read_record(path)
    try:
        return record, _all_arrays(path, record)
    except ModelFileError:
        record = _read_record(path)  # where the model has just been replaced, the new record names the new arrays
        return record, _all_arrays(path, record)


def _all_arrays(path: Path, record: dict[str, Any]) -> dict[str, Array]:
    """The arrays of a model; where ranks wrote a file each, those of the whole network, whose nodes get their names."""
    arrays = _read_arrays(path, record.get("arrays"))
    if "parts" not in record["arrays"]:
        return arrays
    parts = [_read_arrays(path, named) for named in record["arrays"]["parts"]]
    try:
        record["nodes"], joined = join_parts(parts, record["text_ids"])
    except (KeyError, ValueError, IndexError) as error:
        raise ModelFileError(f"{path}: the model is damaged ({type(error).__name__}: {error})") from None
    return arrays | joined


def _checksum(record: Mapping[str, Any]) -> str:
    """Of what a record says, however it is laid out."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _read_record(path: Path) -> dict[str, Any]:
    if not (path / RECORD).is_file():  # nor a pipe, which would wait for ever, nor a link to itself
        raise ModelFileError(f"{path} is not a model folder: it has no {RECORD}")
    try:
        record = json.loads((path / RECORD).read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ModelFileError(f"{path / RECORD}: the model is damaged ({error})") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ModelFileError(f"{path / RECORD} is not a {FORMAT}")
    schema = record.get("schema")
    if not isinstance(schema, int):
        raise ModelFileError(f"{path / RECORD}: the model is damaged (its schema is {schema!r})")
    if schema > LATEST:
        raise ModelFileError(
            f"{path}: the model was written by a newer Coterie (schema {schema}, this one reads up to {LATEST}); update"
        )
    checksum = record.pop("sha256", None)
    if schema >= SIGNED and checksum != _checksum(record):
        raise ModelFileError(f"{path / RECORD}: the model is damaged, the file is not what was written")
    return record


def _read_arrays(path: Path, named: Any) -> dict[str, Array]:
    from safetensors.numpy import load

    try:
        content = (path / named["file"]).read_bytes()
        whole = hashlib.sha256(content).hexdigest() == named["sha256"]
    except (OSError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path}: the model is damaged, its arrays cannot be read ({error})") from None
    if not whole:
        raise ModelFileError(f"{path}: the model is damaged, {named['file']} is not what was written")
    return load(content)


def plain(value: Any) -> Any:
    """Return value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a model file cannot hold {value!r}, of type {type(value).__name__}")
