"""One pass over a source for a direction and its reverse: the job that comes first draws for both."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from entropy_valley import files, locks, provenance
from entropy_valley.corpus import build
from entropy_valley.corpus.build import Corpus
from entropy_valley.corpus.sources import Kinds
from entropy_valley.errors import InputError

DRAWN = "drawn.jsonl"  # beside a direction's corpus.json: what the job of its reverse has drawn for it


@contextlib.contextmanager
def corpus(spec: Mapping[str, Any], kinds: Kinds, report: Path, rows: int | None = None) -> Iterator[Corpus]:
    """The corpus of a direction, as :func:`build.corpus` gives it, for the block to write.

    ``report`` is the path of its ``corpus.json``, that of the reverse direction is in a folder beside it. Where the job
    of the reverse has drawn for this direction, its draw is taken. Else this one reads the source, and leaves a draw
    for the reverse unless that has its corpus. While one job reads, the other waits.
    """
    reverse, corpora = build.backwards(spec), report.parents[1]
    with locks.locked(corpora / "-".join(sorted(spec["direction"].split("-")))):
        drawn = _drawn(spec, report.parent / DRAWN)
        if drawn is None:
            draws = build.both_ways(spec, kinds, rows)
            _leave(reverse, next(draws), corpora / reverse["direction"] / report.name)
            drawn = next(draws)
    yield drawn
    (report.parent / DRAWN).unlink(missing_ok=True)


def _drawn(spec: Mapping[str, Any], place: Path) -> Corpus | None:
    """What the reverse has drawn by this spec; None without it, and if it is damaged: then the source is read again."""
    if not place.is_file():
        return None
    try:
        first, *rows = files.read_jsonl(place)
        said, digest = first["said"], first["digest"]
    except (InputError, LookupError, TypeError):
        return None
    if digest != files.rows_digest([said, *rows]) or said["params"] != spec:
        return None
    return rows[: said["train"]], rows[said["train"] :], said["report"], said["facts"]


def _leave(spec: Mapping[str, Any], drawn: Corpus, report: Path) -> None:
    record = provenance.record_of(report)
    if not (record and report.is_file() and record.matches(spec)):
        train, dev, said, facts = drawn
        about = {"params": spec, "report": said, "facts": facts, "train": len(train)}
        digest = files.rows_digest(itertools.chain([about], train, dev))
        rows = itertools.chain([{"digest": digest, "said": about}], train, dev)
        files.write_jsonl(report.parent / DRAWN, rows)
