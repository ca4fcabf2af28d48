"""Translations of an autoregressive backbone: beam search, only for the sentences that the store has not."""

import importlib.metadata
from collections.abc import Iterator, Sequence
from typing import Any

from entropy_valley import files
from entropy_valley.revisions import GENERATION
from entropy_valley.settings import JsonObject
from entropy_valley.translation.job import RunModel
from entropy_valley.translation.sentences import Sentences
from entropy_valley.translation.settings import Search

LIBRARY = f"transformers {importlib.metadata.version('transformers')}"


def search_of(spec: JsonObject) -> Search:
    """The search in the params of a job."""
    return Search(**{name: spec[name] for name in Search.model_fields})


def translate(model: RunModel, sentences: Sentences) -> list[dict[str, Any]]:
    """Hypothesis rows ``{id, hypothesis, length, tokens, logprob, calls}``.

    ``tokens`` are the ids before the EOS and ``length`` counts the EOS too: where both agree, the search ended
    without one. ``logprob`` is the mean over these ``length`` tokens (nats, four decimals). ``calls`` are the decoder
    passes that they took, one each. Raises InputError, before any pass, for a prompt that fills the context.
    """
    search = search_of(model.spec)
    limits = [min(search.max_new_tokens, sentences.room(place)) for place in range(len(sentences.rows))]
    stage = ["beam", GENERATION, model.digest, f"{model.numerics}|{LIBRARY}"]  # no engine's modes
    own = [search.beams, search.length_penalty, *([] if search.early_stopping else ["heuristic"])]
    pairs = list(zip(sentences.prompts, limits, strict=True))
    keys = [files.digest([*stage, list(prompt), *own, limit]) for prompt, limit in pairs]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        from entropy_valley.translation.beam_search import Task, beam_search  # here: it imports torch

        tasks = [Task(*pairs[place]) for place in missing]
        done = beam_search(model.backbone, search, tasks, model.ledger, model.execution.token_budget)
        for index, hypothesis in done:
            yield missing[index], vars(hypothesis)

    rows = []
    for sentence, best in zip(sentences.rows, model.recall("generate", keys, compute), strict=True):
        tokens, length = best["tokens"], len(best["tokens"]) + best["finished"]
        hypothesis = model.prompt.text(tokens, search.first_line)
        row = {"id": sentence["id"], "hypothesis": hypothesis, "length": length, "tokens": tokens}
        rows.append(row | {"logprob": best["logprob"], "calls": length})
    return rows


def summary(rows: Sequence[JsonObject]) -> dict[str, float]:
    """Totals over the rows; ``unfinished`` counts those that were cut before an EOS."""
    unfinished = sum(row["length"] == len(row["tokens"]) for row in rows)
    return {"sentences": len(rows), "unfinished": unfinished, "calls": sum(row["calls"] for row in rows)}


def signature(model: RunModel) -> JsonObject:
    """What the hypotheses depend on beside the data: the decoder, the backbone and the adapter."""
    search = search_of(model.spec)
    return model.signature(
        LIBRARY,
        f"beam{search.beams}",
        f"lp{search.length_penalty:g}",
        model.precision,
        f"max{search.max_new_tokens}",
        *([] if search.early_stopping else ["heuristic"]),
        *(["line1"] if search.first_line else []),
    )
