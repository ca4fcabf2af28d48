"""The state of one result: its files, the record beside them, and its job's log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.differences import ABSENT, Difference, differences
from entropy_valley.experiment.result import Result
from entropy_valley.provenance import ENDING

DONE, STALE, DAMAGED, FAILED, MISSING = STATES = ("done", "stale", "damaged", "failed", "missing")
SAID_IN = {"train": "adapter.json", "pretrain": "checkpoint.json"}  # the params of results that are older than records
BEGUN = "not there, though its log has no error: it runs, was killed, or its files were removed"
TAIL = 8192  # bytes at the end of a log that are searched for an error


@dataclass(frozen=True, eq=False)
class Finding:
    """The state of a result. ``changed`` are the params that differ, ``why`` says anything else; ``recorded`` is false
    where nothing says by which params it was made."""

    result: Result
    state: str
    why: str = ""
    changed: tuple[Difference, ...] = ()
    recorded: bool = True


class Findings:
    """Looks at results, at each once. ``verify`` compares every file with the digest in its record, too."""

    def __init__(self, verify: bool = False) -> None:
        self.verify = verify
        self._found: dict[Result, Finding] = {}
        self._records: dict[Result, dict[str, Any]] = {}
        self._broken: set[Result] = set()  # whose record cannot be read
        self._folders: dict[str, dict[str, os.DirEntry[str]]] = {}
        self._shared: dict[str, list[Result]] = {}

    def of(self, result: Result) -> Finding:
        """Done, stale, damaged or missing; :meth:`failure` knows whether its job has failed."""
        if result not in self._found:
            self._found[result] = self._look(result)
        return self._found[result]

    def failure(self, result: Result) -> Finding | None:
        """The error that the log of a result's job ends with, or of a job that does its work together with that of
        others; none where the result is newer."""
        there = filter(None, (self._entry(result, name) for name in result.files))
        newest = max((entry.stat().st_mtime for entry in there), default=0.0)
        if error := _error(result.log, newest):
            return Finding(result, FAILED, error)
        return next((found for job in self._together(result) if (found := self._failed(job, newest))), None)

    def _failed(self, job: Result, newest: float) -> Finding | None:
        """One finding for a job, whatever result of it is asked for."""
        if error := _error(job.log, newest):
            self._found.setdefault(job, Finding(job, FAILED, error))
            return self._found[job]
        return None

    def _together(self, result: Result) -> list[Result]:
        """The jobs of the last session that did a result's work together with that of others."""
        folder, _, beginning = result.shared.rpartition("/")
        if result.shared not in self._shared:
            names = [name for name in self._listed(folder) if name.startswith(beginning)] if beginning else []
            last = max((name.split(".")[-2] for name in names if not _of_attempt(name)), default="")
            rule = folder.rpartition("/")[2]
            of = ("direction", "testset") if rule == "comet" else ("direction", "backbone", "seed")
            wildcards = {name: result.wildcards[name] for name in of if result.shared}
            logs = [f"{folder}/{name}" for name in sorted(names) if name.endswith(f".{last}.log")]
            self._shared[result.shared] = [Result(rule, wildcards, folder, (), log) for log in logs]
        return self._shared[result.shared]

    def _look(self, result: Result) -> Finding:
        if not any(self._entry(result, name) for name in result.files):
            folder, _, log = result.log.rpartition("/")
            return Finding(result, MISSING, BEGUN if log in self._listed(folder) else "not made yet")
        record = self._record(result)
        if damage := next(self._damage(result, record), ""):
            return Finding(result, DAMAGED, damage, recorded=bool(record))
        said = record["params"] if record else self._said(result)
        if said is None:
            return Finding(result, DONE, recorded=not result.spec)
        if changed := _changed(said, result.spec, whole=bool(record)):
            return Finding(result, STALE, changed=changed)
        return self._chained(result, record)

    def _damage(self, result: Result, record: Mapping[str, Any]) -> Iterator[str]:
        """What is wrong with the files themselves: those of the result, and further ones that its record names."""
        if result in self._broken:
            yield f"its record {_record_name(result)} cannot be read"
        written = record.get("outputs", {})
        for name in dict.fromkeys([*result.files, *written]):
            entry, was = self._entry(result, name), written.get(name)
            size = entry.stat().st_size if entry else None
            if not size:
                yield f"no {name}" if size is None else f"{name} is empty"
            elif was and was["bytes"] != size:
                yield f"{name} has {size} bytes; {was['bytes']} were written"
            elif was and self.verify and was["digest"] != files.file_digest(f"{result.folder}/{name}"):
                yield f"{name} is not what was written: its digest differs"

    def _chained(self, result: Result, record: Mapping[str, Any]) -> Finding:
        """Whether it was made from the inputs that are there, as far as records say."""
        read = record.get("inputs", {})
        for need in result.needs if read else ():
            for name, written in self._record(need).get("outputs", {}).items():
                if read.get(f"{need.folder}/{name}", written["digest"]) != written["digest"]:
                    if self._recorded_at(need) > self._recorded_at(result):
                        return Finding(result, STALE, f"{name} was made again after it")
                    return Finding(result, DAMAGED, f"it was made from another {name} than is there")
        return Finding(result, DONE)

    def _record(self, result: Result) -> dict[str, Any]:
        """The record beside a result; empty where there is none, or none that can be read."""
        if result not in self._records:
            self._records[result] = {}
            if self._entry(result, _record_name(result)):
                try:
                    self._records[result] = _json(f"{result.folder}/{_record_name(result)}")
                except ValueError:
                    self._broken.add(result)
        return self._records[result]

    def _recorded_at(self, result: Result) -> float:
        entry = self._entry(result, _record_name(result))
        return entry.stat().st_mtime if entry else 0.0

    def _said(self, result: Result) -> Mapping[str, Any] | None:
        """The params that a result without a record says itself."""
        name = SAID_IN.get(result.rule)
        if name not in result.files or not self._entry(result, name):
            return None
        try:
            return _json(f"{result.folder}/{name}").get("spec")
        except ValueError:
            return None

    def _entry(self, result: Result, name: str) -> os.DirEntry[str] | None:
        """A file in a result's folder. Each folder is listed once."""
        below, _, last = name.rpartition("/")
        return self._listed(f"{result.folder}/{below}" if below else result.folder).get(last)

    def _listed(self, folder: str) -> dict[str, os.DirEntry[str]]:
        if folder not in self._folders:
            self._folders[folder] = _entries(folder)
        return self._folders[folder]


def _of_attempt(log: str) -> bool:
    """Whether a log is of an attempt that failed, see :mod:`launch`: ``x.1.log`` beside ``x.log``."""
    return log.split(".")[-2].isdigit()


def _record_name(result: Result) -> str:
    return f"{result.files[0].rpartition('.')[0]}{ENDING}"


def _entries(folder: str) -> dict[str, os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _json(path: str) -> dict[str, Any]:
    """A JSON object; ValueError for any other content."""
    with open(path, "rb") as file:
        content = json.loads(file.read())
    if not isinstance(content, dict):
        raise ValueError(path)
    return content


def _changed(said: Mapping[str, Any], spec: Mapping[str, Any], whole: bool) -> tuple[Difference, ...]:
    """The params that differ; with ``whole`` also those that are no params any more."""
    if said == spec:
        return ()
    return tuple(one for one in differences(said, spec) if whole or one.after is not ABSENT)


def _error(log: str, since: float) -> str:
    """The last error in a log that is no older than ``since``: that of a script, else the last line of a traceback."""
    try:
        about = Path(log).stat()
        if about.st_mtime < since:
            return ""
        with open(log, "rb") as file:
            file.seek(max(0, about.st_size - TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    said = [line for line in lines if line.startswith("error: ")]
    if not said and any(line.startswith("Traceback ") for line in lines):
        said = [line for line in lines if line.strip()]
    return said[-1].strip() if said else ""
