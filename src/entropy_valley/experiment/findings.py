"""The state of one result: its files, the record beside them, and its job's log."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entropy_valley.differences import ABSENT, Difference, differences
from entropy_valley.experiment import downloads
from entropy_valley.experiment.result import Result
from entropy_valley.experiment.written import Written
from entropy_valley.provenance import Record

DONE, STALE, DAMAGED, FAILED, MISSING = STATES = ("done", "stale", "damaged", "failed", "missing")
SAID_IN = {"train": "adapter.json", "pretrain": "checkpoint.json"}  # the params of results that are older than records
COPY = "dev_as_testset"  # its job copies a file of the corpus, and leaves no record
BEGUN = "not there, though its log has no error: it runs, was killed, or its files were removed"
LEDGER = " results asked for, "  # in the last line of a job that has run a model, see `engine.ledger`
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
    """Looks at results, at each once."""

    def __init__(self, written: Written) -> None:
        self.written = written
        self._found: dict[Result, Finding] = {}
        self._records: dict[Result, Record | None] = {}
        self._broken: set[Result] = set()  # whose record cannot be read
        self._shared: dict[str, list[Result]] = {}

    def of(self, result: Result) -> Finding:
        """Done, stale, damaged or missing; :meth:`failure` knows whether its job has failed."""
        if result not in self._found:
            self._found[result] = self._look(result)
        return self._found[result]

    def failure(self, result: Result) -> Finding | None:
        """The error that the log of a result's job ends with, or of a job that does its work together with that of
        others; none where the result is newer."""
        there = filter(None, (self._about(result, name) for name in result.files))
        newest = max((about.st_mtime for about in there), default=0.0)
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
            names = [name for name in self.written.listed(folder) if name.startswith(beginning)] if beginning else []
            last = max((name.split(".")[-2] for name in names if not _of_attempt(name)), default="")
            rule = folder.rpartition("/")[2]
            of = ("direction", "testset") if rule == "comet" else ("direction", "backbone", "seed")
            wildcards = {name: result.wildcards[name] for name in of if result.shared}
            logs = [f"{folder}/{name}" for name in sorted(names) if name.endswith(f".{last}.log")]
            self._shared[result.shared] = [Result(rule, wildcards, folder, (), log) for log in logs]
        return self._shared[result.shared]

    def _look(self, result: Result) -> Finding:
        if not any(self._about(result, name) for name in result.files):
            folder, _, log = result.log.rpartition("/")
            return Finding(result, MISSING, BEGUN if log in self.written.listed(folder) else "not made yet")
        record = self.record(result)
        if damage := self.damage(result, record):
            return Finding(result, DAMAGED, damage, recorded=bool(record))
        said = record.params if record else self._said(result)
        if said is None:
            return Finding(result, DONE, recorded=not result.spec)
        if changed := _changed(said, result.spec, whole=bool(record)):
            return Finding(result, STALE, changed=changed)
        return self._chained(result, record)

    def damage(self, result: Result, record: Record | None) -> str:
        """What is wrong with the files themselves: those of the result, further ones that its record names, and those
        of a download elsewhere; empty if nothing is."""
        if result in self._broken:
            return f"its record {result.record} cannot be read"
        outputs = record.outputs if record else {}
        names = dict.fromkeys([*result.files, *outputs])
        wrong = (self.written.wrong(result.folder, name, outputs.get(name)) for name in names)
        return next(filter(None, wrong), "") or downloads.damage(result, self.written.digests)

    def _chained(self, result: Result, record: Record | None) -> Finding:
        """Whether it was made from the inputs that are there, as far as records say."""
        for need in result.needs if record and record.inputs else ():
            made = self.record(need)
            for name, written in made.outputs.items() if made else ():
                read = self._read_as(record.inputs, need, name)
                if read is None or record.inputs[read] == written["digest"]:
                    continue
                if not self._is(read, need, name):
                    return Finding(result, DAMAGED, f"it was made from {read}, not from {need.folder}/{name}")
                if self._recorded_at(need) > self._recorded_at(result):
                    return Finding(result, STALE, f"{name} was made again after it")
                return Finding(result, DAMAGED, f"it was made from another {name} than is there")
        return Finding(result, DONE)

    def _read_as(self, inputs: Mapping[str, str], need: Result, name: str) -> str | None:
        """What a record calls the file that it should have read; or the only one of that name, which is from elsewhere
        if the result has come from there."""
        if (path := f"{need.folder}/{name}") in inputs or name not in need.files:
            return path if path in inputs else None
        found = [one for one in inputs if one.endswith(f"/{name}")]
        same = [one for one in found if self._is(one, need, name)]
        return (same or (found if len(found) == 1 else [None]))[0]

    def _is(self, path: str, need: Result, name: str) -> bool:
        """Whether a path in a record is that of a file, also where the results folder had another name."""
        return path.endswith(f"{need.folder}/{name}".removeprefix(self.written.root))

    def record(self, result: Result) -> Record | None:
        """The record beside a result; None where there is none, or none that can be read."""
        if result not in self._records:
            self._records[result] = None
            try:
                self._records[result] = self._copied(result) or self.written.record(result.folder, result.record)
            except ValueError:
                self._broken.add(result)
        return self._records[result]

    def _copied(self, result: Result) -> Record | None:
        """What a copy should be like, unless what it was copied from was made again since."""
        about = self._about(result, result.files[0])
        if result.rule != COPY or not about or about.st_mtime < self._recorded_at(result.needs[0]):
            return None
        made = self.record(result.needs[0])
        outputs = {name: said for name, said in made.outputs.items() if name in result.files} if made else {}
        return Record(COPY, {}, {}, outputs)

    def _recorded_at(self, result: Result) -> float:
        about = self._about(result, result.record)
        return about.st_mtime if about else 0.0

    def _said(self, result: Result) -> Mapping[str, Any] | None:
        """The params that a result without a record says itself."""
        name = SAID_IN.get(result.rule)
        if name not in result.files or not self._about(result, name):
            return None
        try:
            return _json(f"{result.folder}/{name}").get("spec")
        except ValueError:
            return None

    def _about(self, result: Result, name: str) -> os.stat_result | None:
        return self.written.about(result.folder, name)


def _of_attempt(log: str) -> bool:
    """Whether a log is of an attempt that failed, see :mod:`launch`: ``x.1.log`` beside ``x.log``."""
    return log.split(".")[-2].isdigit()


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
    """The last error in a log that is no older than ``since``: that of a script, else the last line of a traceback.
    What stands before the ledger of a job has not ended it."""
    try:
        about = Path(log).stat()
        if about.st_mtime < since:
            return ""
        with open(log, "rb") as file:
            file.seek(max(0, about.st_size - TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    done = max((at for at, line in enumerate(lines, 1) if LEDGER in line), default=0)
    lines = lines[done:]
    said = [line for line in lines if line.startswith("error: ")]
    if not said and any(line.startswith("Traceback ") for line in lines):
        said = [line for line in lines if line.strip()]
    return said[-1].strip() if said else ""
