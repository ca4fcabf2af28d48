"""From sentences and a selector to canvas rows, probing only what the selector asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from entropy_valley.backbone.prompt import Prompt
from entropy_valley.canvas.reading import Reading
from entropy_valley.canvas.selectors.base import Choice, Selector, Sentence

Probe = Callable[[Sequence[tuple[int, int]]], Sequence[Reading]]


def choose_canvases(selector: Selector, sentences: Sequence[Sentence], probe: Probe) -> list[dict[str, Any]]:
    """Rows ``{length, candidates, scores, calls, slots}``, one per sentence.

    ``probe`` reads all-mask canvases, each named by (sentence index, slots), all sentences of a round together.
    ``candidates`` are the compared lengths, ascending, with their ``scores``; where nothing is compared, the chosen
    length alone. ``calls`` and ``slots`` are the probes as the paper counts them: passes, and canvas slots in them.
    """
    probes: list[dict[int, Reading]] = [{} for _ in sentences]
    while asked := _proposals(selector, sentences, probes):
        for (index, length), reading in zip(asked, probe(asked), strict=True):
            probes[index][length] = reading
    return [_row(selector.choose(*known), known[1]) for known in zip(sentences, probes, strict=True)]


def sentences_of(rows: Sequence[Mapping[str, str]], prompt: Prompt, selector: Selector) -> list[Sentence]:
    """What the selector may know of each row of the test set: of the target nothing, unless it says it sees it."""
    return [
        Sentence(
            len(prompt.tokens(row["source"])), len(prompt.tokens(row["target"])) if selector.sees_reference else None
        )
        for row in rows
    ]


def _proposals(
    selector: Selector, sentences: Sequence[Sentence], probes: Sequence[Mapping[int, Reading]]
) -> list[tuple[int, int]]:
    return [
        (index, length)
        for index, (sentence, known) in enumerate(zip(sentences, probes, strict=True))
        for length in sorted(set(selector.propose(sentence, known)) - known.keys())
    ]


def _row(choice: Choice, probes: Mapping[int, Reading]) -> dict[str, Any]:
    compared = sorted(choice.scores)
    return {
        "length": choice.length,
        "candidates": compared or [choice.length],
        "scores": [choice.scores[length] for length in compared],
        "calls": len(probes),
        "slots": sum(probes),
    }
