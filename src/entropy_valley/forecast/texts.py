"""How many sentences a corpus or test set has, and how long they are: from its file, else what is usual."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from entropy_valley.experiment import Experiment
from entropy_valley.experiment.matrix import DEV
from entropy_valley.experiment.params import corpora

TOKEN = 4  # bytes of UTF-8: English, German and Chinese differ little
READ = 2000  # lines of a file that are looked at
USUAL = {"train": 30.0, "test": 20.0}  # tokens of a source sentence of WMT19, and of WMT22
GRAMMAR = 10.0  # of the demo's


@dataclass(frozen=True)
class Text:
    """The number of its sentences; the mean tokens of a source and of a translation."""

    sentences: int
    source: float
    target: float


class Texts:
    """The texts of a config, by direction and name: ``train`` or a test set's. ``known`` stands for their files."""

    def __init__(self, experiment: Experiment, known: Mapping[str, tuple[int, float, float]] | None = None) -> None:
        self.experiment, self.known = experiment, known
        self.of = functools.cache(self._of)

    def _of(self, direction: str, name: str) -> Text:
        if self.known is not None:
            return Text(*self.known[f"{direction}/{name}"])
        folder = Path(self.experiment.results, "corpus", direction)
        path = folder / "train.jsonl" if name == "train" else folder / "test" / f"{name}.jsonl"
        return (_measured(path) if path.is_file() else None) or self._usual(direction, name)

    def _usual(self, direction: str, name: str) -> Text:
        corpus, drawn = self.experiment.corpus_of(direction), name in ("train", DEV)
        source = self.experiment.sources[self.experiment.directions[direction].train if drawn else name]
        tokens = GRAMMAR if source.endless else USUAL["train" if drawn else "test"]
        ratios = getattr(self.experiment.length_methods, "ratio", None)
        ratio = ratios.ratios.get(direction, 1.0) if ratios and isinstance(ratios.ratios, dict) else 1.0
        sentences = corpus.train if name == "train" else corpora.sentences(self.experiment, direction, name)
        return Text(sentences, tokens, ratio * tokens)


def _measured(path: Path) -> Text | None:
    """The text of a file: all its lines are counted, and the first of them measured. None for one without pairs, or a
    damaged one: the audit says so."""
    with open(path, "rb") as file:
        first = list(itertools.islice(file, READ))
        count = len(first) + sum(1 for _ in file)
    try:
        pairs = [(pair["source"], pair["target"]) for pair in map(json.loads, first)]
        lengths = [fmean(len(text.encode()) / TOKEN for text in side) for side in zip(*pairs, strict=True)]
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return Text(count, *lengths) if lengths else None
