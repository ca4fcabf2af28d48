"""What an inference job is asked for: a list of requests, each as the job of its own rule would get it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from entropy_valley import files, run
from entropy_valley.errors import InputError

REASSIGNED = "reassigned_canvas"
CANVASES = ("canvas", REASSIGNED)
FITS = ("length_statistics", "length_head")
RULES = (*FITS, *CANVASES, "decode", "valley", "sig_concentration")


@dataclass(frozen=True)
class Asked:
    """A request: the rule whose job writes the result, that job's spec, and its files.

    ``testset`` holds the training pairs of a fit; ``dev`` is the length head's. ``canvases`` are those to be decoded or
    reassigned: another request's, or a finished file's.
    """

    rule: str
    spec: Mapping[str, Any]
    testset: Path
    dev: Path | None = None
    canvases: Self | Path | None = None

    @classmethod
    def of(cls, value: Mapping[str, Any], testset: str | None = None) -> Self:
        """From ``{"rule": …, "spec": …, "testset": …}`` with ``dev`` for a length head, ``canvas`` (a path) or
        ``choose`` (a request) for a decode, ``of`` (either) for reassigned canvases.

        The spec is an object, or text as the rule's own job takes it; within another request the test set may be left
        out. Raises KeyError for what is missing, ValueError for an unknown rule.
        """
        rule, testset = value["rule"], value.get("testset", testset)
        if rule not in RULES:
            raise ValueError(f"rule {rule!r}")
        spec = value["spec"] if isinstance(value["spec"], Mapping) else run.params(value["spec"])
        canvases = None
        if rule == "decode":
            canvases = Path(value["canvas"]) if "canvas" in value else cls.of(value["choose"], testset)
        elif rule == REASSIGNED:
            canvases = Path(value["of"]) if isinstance(value["of"], str) else cls.of(value["of"], testset)
        return cls(rule, spec, Path(testset), Path(value["dev"]) if rule == "length_head" else None, canvases)

    @property
    def key(self) -> str:
        """One name of all that it says."""
        canvases = self.canvases.key if isinstance(self.canvases, Asked) else str(self.canvases)
        return files.digest([self.rule, self.spec, str(self.testset), canvases])

    @property
    def label(self) -> str:
        """What it asks for, in words."""
        spec, of = self.spec, self.canvases
        named = spec.get("method") or (f"{spec['order']}-T{spec['steps']}" if self.rule == "decode" else "")
        canvases = f" ({of.spec['method'] if isinstance(of, Asked) else of})" if of and self.rule == "decode" else ""
        return " ".join(filter(None, [self.rule, named + canvases, str(self.testset)]))

    def chosen(self) -> Iterator[Asked]:
        """The requests for canvases in it, those first that others need."""
        if isinstance(self.canvases, Asked):
            yield from self.canvases.chosen()
        if self.rule in CANVASES:
            yield self


def read_asked(path: Path) -> list[Asked]:
    """The requests of a file; raises InputError for one that is none."""
    values, found = files.read_json(path), []
    for place, value in enumerate(values):
        try:
            found.append(Asked.of(value))
        except (KeyError, TypeError, ValueError) as error:
            remedy = "Let the workflow write the requests, or see `Asked` in src/entropy_valley/decoding/asked.py."
            raise InputError(path, f"request {place} is none ({error!r})", remedy) from None
    return found


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts of every test set: the sentences whose place, divided by it, leaves ``number``."""

    number: int = 0
    count: int = 1

    @classmethod
    def named(cls, text: str) -> Self:
        """From ``K/N`` with 0 ≤ K < N; raises ValueError for another text."""
        number, count = map(int, text.split("/"))
        if not 0 <= number < count:
            raise ValueError(f"no shard {text}")
        return cls(number, count)

    def has(self, place: int) -> bool:
        return place % self.count == self.number
