"""The corpus files of a direction: train, dev and test rows ``{id, source, target}``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from entropy_valley import files
from entropy_valley.corpus import sampling
from entropy_valley.corpus.challenge import challenge
from entropy_valley.corpus.filters import filtered
from entropy_valley.corpus.sampling import Pair
from entropy_valley.corpus.sources import SOURCES, Kinds, Source, make
from entropy_valley.errors import InputError
from entropy_valley.progress import progress

Row = dict[str, str]
Corpus = tuple[list[Row], list[Row], dict[str, Any]]  # train rows, dev rows, report


def corpus(spec: Mapping[str, Any], kinds: Kinds = SOURCES) -> Corpus:
    """Train rows, dev rows and a report.

    ``spec`` (the rule's params) has direction, seed, source (settings of one of ``kinds``), train and dev (numbers of
    pairs) and optionally filters. Raises InputError if the source has too few pairs.
    """
    source, counts = make(spec["source"], kinds), Counter(read=0, filtered=0)
    if source.splits:
        train, dev = (
            _draw(source, _read(spec, source, split, counts), spec[split], spec["seed"], split)
            for split in ("train", "dev")
        )
    else:
        train, dev = sampling.split(_read(spec, source, "train", counts), spec["train"], spec["dev"], spec["seed"])
    return _corpus(spec, counts, train, dev)


def both_ways(spec: Mapping[str, Any], kinds: Kinds = SOURCES) -> tuple[Corpus, Corpus]:
    """:func:`corpus` of a direction and of its reverse, from one pass over a reversible source."""
    source, counts = make(spec["source"], kinds), Counter(read=0, filtered=0)
    pairs = _read(spec, source, "train", counts)
    there, back = sampling.split_both_ways(pairs, spec["train"], spec["dev"], spec["seed"])
    return _corpus(spec, counts, *there), _corpus(backwards(spec), counts, *back)


def backwards(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of the reverse direction."""
    return {**spec, "direction": "-".join(reversed(spec["direction"].split("-")))}


def _read(spec: Mapping[str, Any], source: Source, split: str, counts: Counter[str]) -> Iterator[Pair]:
    pairs = source.pairs(spec["direction"], split, spec["seed"])
    shown = progress(pairs, description=f"reading {spec['direction']} {split}", unit="pair")
    return filtered(shown, spec["direction"], spec.get("filters") or {}, counts)


def _corpus(spec: Mapping[str, Any], counts: Counter[str], train: Sequence[Pair], dev: Sequence[Pair]) -> Corpus:
    rows = _rows("train", enumerate(train, 1)), _rows("dev", enumerate(dev, 1))
    return *rows, _report(spec, counts, *rows)


def testset(spec: Mapping[str, Any], kinds: Kinds = SOURCES) -> list[Row]:
    """The rows of a test set: all, or the ``limit`` rows of lowest rank, in the order of the source.

    With ``challenge``, the challenge subset of these (see :mod:`.challenge`). Ids number the source's sentences, so
    they are the same for every limit. ``spec`` (the rule's params) has direction, seed, source, limit (a number or
    None) and optionally filters and challenge (a number).
    """
    drawn, size = _limited(spec, kinds), spec.get("challenge")
    if size is not None:
        drawn = challenge(drawn, size, spec["seed"], spec["direction"].split("-")[0])
    return _rows("test", drawn)


def own_files(spec: Mapping[str, Any]) -> list[str]:
    """The user's own text files that a corpus or test set is read from."""
    source = spec["source"]
    return [source["source"], source["target"]] if source["name"] == "files" else []


def _limited(spec: Mapping[str, Any], kinds: Kinds) -> list[tuple[int, Pair]]:
    """The numbered pairs of a test set; for an endless source the first ``limit`` pairs."""
    source, counts, limit = make(spec["source"], kinds), Counter(), spec["limit"]
    pairs = source.pairs(spec["direction"], "test", spec["seed"])
    kept = filtered(pairs, spec["direction"], spec.get("filters") or {}, counts)
    if source.endless:
        return list(enumerate(islice(kept, _endless_limit(limit)), 1))
    drawn = sampling.subset(kept, limit, spec["seed"])
    if limit is not None and len(drawn) < limit:
        raise sampling.shortage(len(drawn), limit, "test")
    return drawn


def _endless_limit(limit: int | None) -> int:
    if limit is None:
        raise InputError("test set: limit", "null, but this source never ends", "Give a number of sentences.")
    return limit


def _draw(source: Source, pairs: Iterable[Pair], size: int, seed: int, split: str) -> list[Pair]:
    """The first pairs of an endless source; of any other source the pairs of lowest rank."""
    drawn = list(islice(pairs, size)) if source.endless else sampling.bottom_k(pairs, size, seed)
    if len(drawn) < size:
        raise sampling.shortage(len(drawn), size, split)
    return drawn


def _rows(split: str, numbered: Iterable[tuple[int, Pair]]) -> list[Row]:
    return [
        {"id": f"{split}-{number:06d}", "source": source, "target": target} for number, (source, target) in numbered
    ]


def _report(spec: Mapping[str, Any], counts: Counter[str], train: list[Row], dev: list[Row]) -> dict[str, Any]:
    return {
        "direction": spec["direction"],
        "seed": spec["seed"],
        "source": dict(spec["source"]),
        "filters": spec.get("filters") or {},
        "counts": {**counts, "train": len(train), "dev": len(dev)},
        "digest": {"train": files.digest(train), "dev": files.digest(dev)},
    }
