"""Three sentences that show what the canvas decides, chosen by rule: two wins of EV over Ratio, and a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, Self

from entropy_valley import files
from entropy_valley.analysis.coverage import hypotheses
from entropy_valley.analysis.coverage_items import EXTRACTORS, NUMBERS, PLACEHOLDERS, retention
from entropy_valley.analysis.params import Params, ScoredCell
from entropy_valley.analysis.scores import require_sentences, sentences
from entropy_valley.errors import InputError
from entropy_valley.late import pandas as pd

METHODS = ("ratio", "ev", "oracle")
WIN, KEPT, BEYOND = "largest win", "largest win in what is kept", "largest loss beyond the grid"
RUN = ("backbone", "direction", "testset", "seed")
SYSTEM = [f"{method}_{key}" for method in METHODS for key in ("slots", "output", "score")]
COLUMNS = [*RUN, "case", "id", "source", "reference", *SYSTEM, "delta"]
COLUMNS += ["items", "ratio_kept", "ev_kept", "candidates", "entropies"]
Sentence = Mapping[str, Any]

# For each case: which sentences count, and what is the largest of the one that is taken.
RULES: Mapping[str, tuple[Callable[[Sentence], bool], Callable[[Sentence], Any]]] = {
    WIN: (lambda one: one["lead"] > 0, lambda one: one["lead"]),
    KEPT: (lambda one: one["more_kept"] > 0, lambda one: (one["more_kept"], one["lead"])),
    BEYOND: (lambda one: one["beyond"] and one["lead"] < 0, lambda one: -one["lead"]),
}


@dataclass(frozen=True)
class CaseParams(Params):
    """Params of one run's cells of :data:`METHODS`; ``sentences`` is the file of its test set."""

    sentences: str = ""

    @classmethod
    def parse(cls, value: Mapping[str, Any], required: Iterable[str] = ()) -> Self:
        """As :meth:`Params.parse`; other cells than one of each method are an :class:`InputError`."""
        params = super().parse(value, ("sentences", *required))
        methods = [cell.method for cell in params.cells]
        if sorted(methods) != sorted(METHODS):
            raise InputError("PARAMS", f"cells of {', '.join(methods)}", f"Give one of each of {', '.join(METHODS)}.")
        return params


def cases(params: CaseParams) -> pd.DataFrame:
    """A row for each of :data:`RULES` that the run has a sentence for, :data:`COLUMNS`.

    Of each method the ``…_slots`` of its canvas, its ``…_output`` and ``…_score``; ``delta``, EV's score minus Ratio's;
    ``items``, the kind whose retention is looked at (placeholder; number in a test set without any), and the share
    of the source's that ``ratio_kept`` and ``ev_kept``, NaN where it has none; ``candidates``, the slots that EV
    compared, and their mean ``entropies`` in nats, as text. No sentence comes twice; of equal ones the first is taken.
    """
    run = {key: getattr(params.cells[0], key) for key in RUN}
    rows = (run | {"case": case} | dict(one) for case, one in chosen(list(_sentences(params))))
    return pd.DataFrame(rows, columns=COLUMNS)


def curve(case: Any) -> tuple[list[int], list[float]]:
    """Candidates and entropies of a row of :func:`cases`."""
    return [*map(int, case.candidates.split())], [*map(float, case.entropies.split())]


def chosen(found: Sequence[Sentence]) -> Iterator[tuple[str, Sentence]]:
    """The cases in their order, each with its sentence; a sentence has all that :data:`RULES` ask for."""
    taken: list[Sentence] = []
    for case, (counts, size) in RULES.items():
        fitting = [one for one in found if counts(one) and one not in taken]
        if fitting:
            taken.append(max(fitting, key=size))
            yield case, taken[-1]


def _sentences(params: CaseParams) -> Iterator[Sentence]:
    """Of each sentence, in the file's order, :data:`COLUMNS` and what the rules ask for.

    ``lead``: EV's in score; ``more_kept``: its lead in the share that is kept; ``beyond``: the reference's canvas is
    shorter or longer than all candidates.
    """
    testset = {row["id"]: row for row in files.read_jsonl(params.sentences, ("id", "source", "target"))}
    systems = {cell.method: _system(cell, params, testset) for cell in params.cells}
    kind = PLACEHOLDERS if any(EXTRACTORS[PLACEHOLDERS](row["source"]) for row in testset.values()) else NUMBERS
    sign = 1 if params.metric.higher_is_better else -1
    for name, row in testset.items():
        of = {f"{method}_{key}": value for method in METHODS for key, value in systems[method][name].items()}
        kept = {f"{method}_kept": _kept(EXTRACTORS[kind](row["source"]), of[f"{method}_output"]) for method in METHODS}
        candidates, delta = of["ev_candidates"], of["ev_score"] - of["ratio_score"]
        yield {
            **{"id": name, "source": row["source"], "reference": row["target"], **of, "delta": delta, "items": kind},
            **{**kept, "candidates": _text(candidates), "entropies": _text(of["ev_entropies"])},
            **{"lead": sign * delta, "more_kept": kept["ev_kept"] - kept["ratio_kept"]},
            "beyond": not min(candidates) <= of["oracle_slots"] <= max(candidates),
        }


def _system(cell: ScoredCell, params: CaseParams, testset: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What a method did with each sentence, by id."""
    scores = sentences(cell, params.metric)
    canvases = {row["id"]: row for row in cell.canvases("length", "candidates", "scores")}
    outputs = hypotheses(cell, params.sentences, testset)
    require_sentences(cell.within(cell.scores_file), scores.index, params.sentences, testset)
    found = {}
    for name, canvas in canvases.items():
        grid = {"candidates": canvas["candidates"], "entropies": canvas["scores"]}
        found[name] = {"slots": canvas["length"], "output": outputs[name], "score": float(scores[name]), **grid}
    return found


def _kept(items: Sequence[str], output: str) -> float:
    return retention(items, output) if items else nan


def _text(numbers: Iterable[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)
