"""A folder of results as the workflow leaves it, with records and logs, but with made-up content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from entropy_valley import files
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.chain import Chain
from entropy_valley.experiment.matrix import Cell, all_cells
from entropy_valley.experiment.result import Result


def write(
    experiment: Experiment, cells: Iterable[Cell] | None = None, records: bool = True, logs: bool = True
) -> Chain:
    """Write every result that the cells (None: all of a config) are made from; return their chain."""
    chain = Chain(experiment)
    digests: dict[str, str] = {}
    written: set[Result] = set()
    for cell in all_cells(experiment) if cells is None else cells:
        _write(chain.scores(cell), digests, written, records, logs)
    return chain


def make(result: Result, content: str = "", records: bool = True) -> None:
    """Write one result anew."""
    read = [f"{need.folder}/{need.files[0]}" for need in result.needs]
    _write_files(result, {path: files.file_digest(path) for path in read}, records, content)


def _write(result: Result, digests: dict[str, str], written: set[Result], records: bool, logs: bool) -> None:
    if result in written:
        return
    written.add(result)
    for need in result.needs:
        _write(need, digests, written, records, logs)
    _write_files(result, digests, records)
    if logs:
        _put(result.log, b"100 %\n")


def _write_files(result: Result, digests: dict[str, str], records: bool, content: str = "") -> None:
    outputs = {}
    for name in result.files:
        path = f"{result.folder}/{name}"
        text = f"{path} {content}\n".encode()
        _put(path, text)
        digests[path] = hashlib.blake2b(text, digest_size=16).hexdigest()
        outputs[name] = {"digest": digests[path], "bytes": len(text)}
    if records:
        read = [f"{need.folder}/{need.files[0]}" for need in result.needs]
        record = {"rule": result.rule, "params": result.spec, "inputs": {path: digests[path] for path in read}}
        place = Path(result.folder, result.files[0]).with_suffix(".made.json")
        _put(str(place), files.canonical({**record, "outputs": outputs}).encode())


def _put(path: str, content: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content)
