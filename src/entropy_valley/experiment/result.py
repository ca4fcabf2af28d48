"""What one job of the workflow writes, and from what."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from entropy_valley.provenance import ENDING

RULES = (  # in the order of the workflow
    *("fetch_dataset", "corpus", "testset", "dev_as_testset", "fetch_backbone", "pretrain", "train", "adopt_adapter"),
    *("tokens", "length_ratios"),
    *("length_statistics", "length_head", "canvas", "reassigned_canvas", "decode", "generate"),
    *("fetch_comet", "train_comet", "score", "valley", "sig_concentration", "latency"),
)
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Result:
    """What one job writes: its rule and wildcards; the folder and the files in it, the first of which has the record
    beside it; its log; its params, none for a rule that has none; and the results that it reads.

    ``elsewhere`` is the folder of a download, or of the user's own files, that its first file describes.
    ``own`` marks what belongs to a few cells only: without it, they are not whole. ``shared`` is how the logs of jobs
    begin that do its work together with that of others.
    """

    rule: str
    wildcards: Mapping[str, str]
    folder: str
    files: tuple[str, ...]
    log: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[Result, ...] = ()
    own: bool = False
    shared: str = ""
    elsewhere: str = ""

    @property
    def record(self) -> str:
        """The name of the record in its folder."""
        return f"{self.files[0].rpartition('.')[0]}{ENDING}"

    @property
    def paths(self) -> list[str]:
        """Its files."""
        return [f"{self.folder}/{name}" for name in self.files]

    @property
    def key(self) -> tuple[str, ...]:
        """Which job it is, in any config."""
        return (self.rule, *self.wildcards.values())


def once(method: Callable[..., R]) -> Callable[..., R]:
    """Remember what a method returns for its arguments, in the ``found`` of its object."""

    @functools.wraps(method)
    def remembered(owner: Any, *arguments: Any) -> R:
        key = (method.__name__, *arguments)
        if key not in owner.found:
            owner.found[key] = method(owner, *arguments)
        return owner.found[key]

    return remembered


def collect(result: Result, into: dict[Result, None]) -> None:
    """Add a result after all that it is made from, each once."""
    if result not in into:
        for need in result.needs:
            collect(need, into)
        into[result] = None
