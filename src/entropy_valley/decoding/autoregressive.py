"""From a test set to the translations of an autoregressive backbone, searching only for what the store has not."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.revisions import GENERATION

if TYPE_CHECKING:
    from entropy_valley.engine.job import Job

LIBRARY = f"transformers {importlib.metadata.version('transformers')}"


@dataclass(frozen=True)
class Search:
    """How translations are searched for.

    A hypothesis scores log p / length^``length_penalty``, its EOS counted. The search of a sentence ends with its
    first ``beams`` finished hypotheses, or after ``max_new_tokens`` tokens. Without ``early_stopping`` it goes on while
    the best unfinished hypothesis scores more than the worst finished one. With ``first_line`` a translation ends at
    its first line break.
    """

    beams: int
    length_penalty: float
    max_new_tokens: int
    early_stopping: bool = True
    first_line: bool = False

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Search:
        """The search in the params of a job; what is usual is not in them."""
        return cls(**{field.name: spec[field.name] for field in dataclasses.fields(cls) if field.name in spec})

    @property
    def key(self) -> list[Any]:
        """What the found tokens depend on, apart from the limit of each sentence."""
        return [self.beams, self.length_penalty, *([] if self.early_stopping else ["heuristic"])]


def translate(job: Job, search: Search) -> list[dict[str, Any]]:
    """Hypothesis rows ``{id, hypothesis, length, tokens, logprob, calls}``.

    ``tokens`` are the ids before the EOS and ``length`` counts the EOS too: where both agree, the search ended
    without one. ``logprob`` is the mean over these ``length`` tokens (nats, four decimals). ``calls`` are the decoder
    passes that they took, one each. Raises InputError, before any pass, for a prompt that fills the context.
    """
    found = _search(job, search)
    return [_row(job, search, row["id"], hypothesis) for row, hypothesis in zip(job.rows, found, strict=True)]


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Totals over the rows; ``unfinished`` counts those that were cut before an EOS."""
    unfinished = sum(row["length"] == len(row["tokens"]) for row in rows)
    return {"sentences": len(rows), "unfinished": unfinished, "calls": sum(row["calls"] for row in rows)}


def signature(job: Job, search: Search) -> dict[str, Any]:
    """What the hypotheses depend on beside the data: the decoder, the backbone and the adapter."""
    return job.signature(
        LIBRARY,
        f"beam{search.beams}",
        f"lp{search.length_penalty:g}",
        job.precision,
        f"max{search.max_new_tokens}",
        *([] if search.early_stopping else ["heuristic"]),
        *(["line1"] if search.first_line else []),
    )


def _search(job: Job, search: Search) -> list[dict[str, Any]]:
    limits = [min(search.max_new_tokens, job.inputs.room(place)) for place in range(len(job.rows))]
    stage = ["beam", GENERATION, job.identity.digest, f"{job.model_numerics}|{LIBRARY}"]  # no engine's modes
    keys = [
        files.digest([*stage, list(prompt), *search.key, limit])
        for prompt, limit in zip(job.inputs.prompts, limits, strict=True)
    ]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.decoding.beam_search import BeamSearch, Task

        tasks = [Task(job.inputs.prompts[place], limits[place]) for place in missing]
        for done, found in BeamSearch(job.backbone, search, job.ledger, job.how.token_budget).run(tasks):
            yield missing[done], vars(found)

    return job.recall("generate", keys, compute)


def _row(job: Job, search: Search, sentence: str, found: Mapping[str, Any]) -> dict[str, Any]:
    length = len(found["tokens"]) + found["finished"]
    return {
        "id": sentence,
        "hypothesis": job.identity.prompt.text(found["tokens"], search.first_line),
        "length": length,
        "tokens": found["tokens"],
        "logprob": found["logprob"],
        "calls": length,
    }
