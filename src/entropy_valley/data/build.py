"""The corpus files of a direction: train, dev and test rows ``{id, source, target}``; their overlap."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from entropy_valley import files
from entropy_valley.data import sampling
from entropy_valley.data.categories import challenge
from entropy_valley.data.sampling import Pair, Tally, filtered, judged, within
from entropy_valley.data.sources import SOURCES, Kinds, make
from entropy_valley.data.sources.base import Source
from entropy_valley.errors import InputError
from entropy_valley.progress import progress
from entropy_valley.settings import JsonObject
from entropy_valley.texts import hidden, visible

Row = dict[str, Any]
# Train rows, dev rows, the report, and facts for the job's record: what was read, and why pairs were dropped.
Corpus = tuple[list[Row], list[Row], dict[str, Any], dict[str, Any]]
SPLITS = ("train", "dev")
KEYED = "keyed_hash"  # how pairs and subsets are drawn by default


def corpus(spec: JsonObject, kinds: Kinds = SOURCES, folder: str | None = None, rows: int | None = None) -> Corpus:
    """Train rows, dev rows, a report, and facts for the record.

    ``spec`` (the rule's params) has direction, seed, source (settings of one of ``kinds``), train and dev (the most
    pairs, see :func:`.sampling.shares`) and optionally filters and sampling. ``folder`` is where a downloaded source
    is, ``rows`` how many it must have. Raises InputError if the source has hardly any pairs.
    """
    source, counts = _source(spec, kinds, folder, rows), Tally()
    drawn = _drawn(spec, source, counts)
    train, dev = (_rows(split, enumerate(pairs, 1)) for split, pairs in zip(SPLITS, drawn, strict=True))
    facts = {**origin(spec, *SPLITS, kinds=kinds, folder=folder), "dropped": counts.reasons}
    report = {
        "direction": spec["direction"],
        "seed": spec["seed"],
        "source": dict(spec["source"]),
        "filters": spec.get("filters") or {},
        "counts": {"read": counts.read, "filtered": counts.dropped.total(), "train": len(train), "dev": len(dev)},
        "digest": {"train": files.digest(train), "dev": files.digest(dev)},
    }
    return train, dev, report, facts


def _source(spec: JsonObject, kinds: Kinds, folder: str | None = None, rows: int | None = None) -> Source:
    """The source, with what is known of it beside its settings."""
    beside = {"folder": folder, "rows": rows}
    return make({**spec["source"], **{key: value for key, value in beside.items() if value}}, kinds)


def _drawn(spec: JsonObject, source: Source, counts: Tally) -> list[list[Pair]]:
    """The train and dev pairs, by the source's kind and the sampling."""
    direction, seed, filters = spec["direction"], spec["seed"], spec.get("filters") or {}

    def shown(pairs: Iterable[Pair], split: str) -> Iterable[Pair]:
        return progress(pairs, source.total, description=f"reading {direction} {split}", unit="pair")

    def passing(split: str) -> Iterator[Pair]:
        pairs = shown(source.pairs(direction, split, seed), split)
        return filtered(pairs, direction, filters, counts, endless=source.endless)

    def all_judged() -> Iterator[tuple[Pair, bool]]:
        """All pairs, and whether they pass the filters as they are, as in the authors' scripts."""
        counts.read = 0  # they are read twice, and counted once
        counts.dropped.clear()
        pairs = shown(source.unstripped(direction, "train", seed), "train")
        return judged(pairs, direction, filters, counts, within)

    sizes = spec["train"], spec["dev"]
    if not (source.given or source.splits):
        if spec.get("sampling", KEYED) == KEYED:
            return [*sampling.split(passing("train"), *sizes, seed)]
        drawn = sampling.shuffled_split(all_judged, *sizes, seed, spec["sampling"])
        return [[(first.strip(), second.strip()) for first, second in pairs] for pairs in drawn]
    splits = []
    for split, size in zip(SPLITS, sizes, strict=True):
        if source.given:  # the first pairs of a file, which is taken as it is
            pairs = list(islice(source.pairs(direction, split, seed), size))
            counts.read += len(pairs)
        elif source.endless:
            pairs = list(islice(passing(split), size))
        else:
            pairs = sampling.bottom_k(passing(split), size, seed)
        sampling.warn_fewer(len(pairs), size, split)
        splits.append(pairs)
    return splits


def testset(spec: JsonObject, kinds: Kinds = SOURCES, folder: str | None = None, rows: int | None = None) -> list[Row]:
    """The rows of a test set: all, or at most ``limit`` rows, in the order of the source.

    With ``challenge``, the challenge subset of these (see :mod:`.categories`). Ids number the source's sentences, so
    they are the same for every limit. ``spec`` (the rule's params) has direction, seed, source, limit (a number or
    None) and optionally filters and challenge (a number); ``subset`` names how they are drawn.
    """
    source, direction, limit = _source(spec, kinds, folder, rows), spec["direction"], spec["limit"]
    pairs = source.pairs(direction, "test", spec["seed"])
    kept = filtered(pairs, direction, spec.get("filters") or {}, Tally(), endless=source.endless)
    if not source.endless:
        drawn = sampling.subset(kept, limit, spec["seed"], spec.get("subset", KEYED))
        sampling.warn_fewer(len(drawn), limit or 0, "test")
    elif limit is None:
        raise InputError("test set: limit", "null, but this source never ends", "Give a number of sentences.")
    else:
        drawn = list(enumerate(islice(kept, limit), 1))
    if not drawn:
        place = ", ".join(source.own_files(direction, "test")) or spec["source"]["name"]
        raise InputError(place, "no sentence pair, or only such with a blank side", "Give a test set with sentences.")
    if (size := spec.get("challenge")) is not None:
        drawn = challenge(drawn, size, direction)
    testset = _rows("test", drawn)
    spans = source.spans(direction)
    if spans is not None:
        spans_of = dict(enumerate(islice(spans, max(number for number, _ in drawn)), 1))
        for (number, _), row in zip(drawn, testset, strict=True):
            row["anchors"] = spans_of[number]
    return testset


def origin(spec: JsonObject, *splits: str, kinds: Kinds = SOURCES, folder: str | None = None) -> JsonObject:
    """The fact for the record of what splits were read from beside the inputs of their job; empty if there is none."""
    read = _source(spec, kinds, folder).origin(spec["direction"], *splits)
    return {"origin": read} if read else {}


def own_files(spec: JsonObject, *splits: str, kinds: Kinds = SOURCES) -> list[str]:
    """The user's own files that these splits of a corpus or test set are read from."""
    return make(spec["source"], kinds).own_files(spec["direction"], *splits)


def _rows(split: str, numbered: Iterable[tuple[int, Pair]]) -> list[Row]:
    return [
        {"id": f"{split}-{number:06d}", "source": source, "target": target} for number, (source, target) in numbered
    ]


# --- What a reader must know of a test set: which of its sentences occur in the training pairs, and which are odd.
#
# Two sentences are the same if all their characters are.


def overlap(test: Sequence[Row], train: Iterable[Row] | None = None) -> JsonObject:
    """Counts of the ``sentences`` of a test set.

    ``repeated``: the source is that of an earlier sentence. ``copied``: the reference is the source. ``invisible``: a
    side has no character that can be seen. ``hidden``: a side has characters that cannot be seen beside blanks, see
    :func:`.hidden`. With training pairs, which are read once, ``training`` counts test sentences
    with a training ``source``, with a training ``target`` as their reference, and with a whole training ``pair``; and
    the training pairs, of which some are ``copied``, ``invisible`` or ``hidden`` too.
    """
    tested = [(row["source"], row["target"]) for row in test]
    repeated = len(test) - len({source for source, _ in tested})
    counted = {"sentences": len(test), "repeated": repeated, **_odd(tested)}
    if train is None:
        return counted
    pairs = [(row["source"], row["target"]) for row in train]
    sources, targets = {source for source, _ in pairs}, {target for _, target in pairs}
    whole = set(pairs)
    return {
        **counted,
        "training": {
            "pairs": len(pairs),
            "source": sum(source in sources for source, _ in tested),
            "target": sum(target in targets for _, target in tested),
            "pair": sum(pair in whole for pair in tested),
            **_odd(pairs),
        },
    }


def _odd(pairs: Sequence[Pair]) -> dict[str, int]:
    return {
        "copied": sum(source == target for source, target in pairs),
        "invisible": sum(not (visible(source) and visible(target)) for source, target in pairs),
        "hidden": sum(bool(hidden(source) or hidden(target)) for source, target in pairs),
    }
