"""What is damaged in a results folder, and what to delete so that the next run makes it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from entropy_valley import files, store
from entropy_valley.errors import InputError, refusal
from entropy_valley.experiment import downloads
from entropy_valley.experiment.audit import Audit
from entropy_valley.experiment.findings import DAMAGED, Finding
from entropy_valley.experiment.matrix import Cell, all_cells
from entropy_valley.experiment.result import Result
from entropy_valley.experiment.written import Written
from entropy_valley.provenance import ENDING
from entropy_valley.store import Store
from entropy_valley.training import resumable

STORES = ("store", "work/length_statistics")  # in the results: folders of stores
AGAIN = "work/again.json"  # in the results: what was deleted, for the next run
LOCKS = Path(".snakemake/locks")


@dataclass(frozen=True)
class Damage:
    """What is damaged, the rule of the job that makes it again, and why one knows.

    ``remove`` are the files and folders to delete; of a shard of the store only ``lines``, from 1. Nothing for a user's
    own files, and for what is lost.
    """

    place: str
    rule: str
    why: str
    remove: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()


def of_results(audit: Audit, cells: Iterable[Cell]) -> dict[Result, Damage]:
    """The damaged results that cells are made from."""
    found = [audit.findings.of(one) for one in audit.made_from(cells)]
    return {one.result: _damage(audit, one) for one in found if one.state == DAMAGED}


def beside(audit: Audit) -> list[Damage]:
    """What is damaged of all else: tables, figures and other results with records, the store, and the checkpoints of
    trainings that are under way."""
    root = Path(audit.experiment.results)
    return [*_unread(audit), *_lines(audit, root), *_trainings(root)]


def remove(root: str, damages: Sequence[Damage]) -> None:
    """Delete what is damaged in a results folder, ``root``, and note it for the next run: Snakemake itself would not
    make a file again that only finished results were made from. Raises InputError while it runs in this folder.
    """
    if LOCKS.is_dir() and any(LOCKS.iterdir()):
        remedy = "Let it end, or see `snakemake --unlock`; then repair."
        raise InputError(LOCKS, "Snakemake runs in this folder, or was killed", remedy)
    deleted = [one.place for one in damages if one.remove and not (one.lines or Path(one.place).is_dir())]
    files.write_json(Path(root, AGAIN), sorted({*deleted, *_missing(root)}))
    for one in damages:
        for path in map(Path, one.remove):
            if one.lines:
                store.without_lines(path, one.lines)
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def to_make_again(root: str, makes: Callable[[], Container[str]]) -> list[str]:
    """What was deleted of a results folder and is not there yet, of the files that a config ``makes``."""
    missing = _missing(root)
    made = makes() if missing else ()
    return [path for path in missing if path in made]


def forget(root: str) -> None:
    """Forget what was deleted, when all of it is there again."""
    if not _missing(root):
        Path(root, AGAIN).unlink(missing_ok=True)


def _missing(root: str) -> list[str]:
    place = Path(root, AGAIN)
    listed = files.read_json(place) if place.is_file() else []
    if not (isinstance(listed, list) and all(isinstance(path, str) for path in listed)):
        raise InputError(place, "is no list of files", "Remove it and repair again.")
    return [path for path in listed if not Path(path).exists()]


def _damage(audit: Audit, found: Finding) -> Damage:
    result, record = found.result, audit.findings.record(found.result)
    names = dict.fromkeys([*result.files, *(record.outputs if record else ()), result.record])
    remove = [f"{result.folder}/{name}" for name in names if audit.written.about(result.folder, name)]
    if downloads.damage(result, audit.written.digests):
        remove = [] if _own(audit, result) else [*remove, result.elsewhere]
    return Damage(result.paths[0], result.rule, found.why, tuple(remove))


def _own(audit: Audit, result: Result) -> bool:
    """Whether what a result describes is the user's own."""
    return result.rule == "fetch_backbone" and bool(audit.experiment.backbones[result.wildcards["backbone"]].folder)


def _unread(audit: Audit) -> Iterator[Damage]:
    """Damaged files of records that no cell of the config needs; not where all files of a job were removed."""
    known = {f"{one.folder}/{one.record}" for one in audit.made_from(all_cells(audit.experiment))}
    for folder, name in sorted(record for record in audit.written.records() if "/".join(record) not in known):
        result, readable = _result(audit.written, folder, name)
        if readable and not any(audit.written.about(folder, file) for file in result.files):
            continue
        if why := audit.findings.damage(result, audit.findings.record(result)):
            yield _damage(audit, Finding(result, DAMAGED, why))


def _result(written: Written, folder: str, name: str) -> tuple[Result, bool]:
    """The result of a record, and whether this can be read: if not, its files are those that are named as it is."""
    stem = name.removesuffix(ENDING)
    try:
        record = written.record(folder, name)
    except ValueError:
        record = None
    beside = [file for file in written.listed(folder) if file.startswith(f"{stem}.") and file != name]
    outputs = sorted(record.outputs if record else beside, key=lambda file: file.rpartition(".")[0] != stem)
    rule, first = record.rule if record else "unknown", outputs[:1] or [f"{stem}.json"]
    return Result(rule, {}, folder, (*first, *outputs[1:]), log=""), bool(record)


def _lines(audit: Audit, root: Path) -> Iterator[Damage]:
    """Shards with damaged lines whose value no other line has: what a later job has computed again is whole."""
    for shard in sorted(path for folder in STORES for path in (root / folder).rglob("*.jsonl")):
        found = audit.written.digests.of(str(shard), shard.stat(), store.damaged_lines)
        if found:
            with Store(shard.parent) as values:
                found = [number for number, key in found if not values.has(key)]
        if found:
            why = f"{len(found)} of its values are not what was written, first in line {found[0]}"
            yield Damage(str(shard), "store", why, (str(shard),), tuple(found))


def _trainings(root: Path) -> Iterator[Damage]:
    """Checkpoints that a training would go on from, looked at twice: one that runs may just have removed its own."""
    for kind, name, check in (("train", resumable.POINTER, _checkpoint), ("pretrain", resumable.STATE, _state)):
        for path in sorted((root / "work" / kind).glob(f"*/{name}")):
            why = refusal(check, path) and refusal(check, path)
            if why:
                yield Damage(str(path.parent), kind, why, (str(path.parent),))


def _checkpoint(pointer: Path) -> None:
    resumable.require_whole(pointer.parent)


def _state(path: Path) -> None:
    resumable.without_digest(path)
