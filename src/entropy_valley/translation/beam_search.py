"""Translations of an autoregressive backbone: beam search, only for the sentences that the store has not.

The search is transformers' own ``generate`` on the stock class. Around it: batches of prompts of similar length, padded
on the left and masked by position (the pad is the EOS); a configuration that names every option, so that no sampling
default of a checkpoint leaks in; and the log-probability of the best hypothesis, read in one packed pass, because
``generate`` would keep the scores of every step and token for it. Torch is imported when a search begins.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from entropy_valley import files
from entropy_valley.decoding.canvas import Ledger
from entropy_valley.revisions import GENERATION
from entropy_valley.translation.settings import Search

if TYPE_CHECKING:
    from entropy_valley.model.load import Backbone
    from entropy_valley.translation.job import RunModel, Sentences


LIBRARY = f"transformers {importlib.metadata.version('transformers')}"
_BUDGET = {"cpu": 2**14, "cuda": 2**17}  # tokens in the caches of a batch


def search_of(spec: Mapping[str, Any]) -> Search:
    """The search in the params of a job."""
    return Search(**{name: spec[name] for name in Search.model_fields})


def translate(sentences: Sentences, search: Search) -> list[dict[str, Any]]:
    """Hypothesis rows ``{id, hypothesis, length, tokens, logprob, calls}``.

    ``tokens`` are the ids before the EOS and ``length`` counts the EOS too: where both agree, the search ended
    without one. ``logprob`` is the mean over these ``length`` tokens (nats, four decimals). ``calls`` are the decoder
    passes that they took, one each. Raises InputError, before any pass, for a prompt that fills the context.
    """
    model, inputs = sentences.model, sentences.inputs
    tasks = []
    for place, prompt in enumerate(inputs.prompts):
        tasks.append(Task(prompt, min(search.max_new_tokens, inputs.room(place))))
    stage = ["beam", GENERATION, model.identity.digest, f"{model.numerics}|{LIBRARY}"]  # no engine's modes
    own = [search.beams, search.length_penalty, *([] if search.early_stopping else ["heuristic"])]
    keys = [files.digest([*stage, list(task.prompt), *own, task.limit]) for task in tasks]

    def compute(missing: Sequence[int]) -> Iterator[tuple[int, Any]]:
        beams = BeamSearch(model.backbone, search, model.ledger, model.execution.token_budget)
        for index, hypothesis in beams.run([tasks[place] for place in missing]):
            yield missing[index], vars(hypothesis)

    rows = []
    for sentence, best in zip(sentences.rows, model.recall("generate", keys, compute), strict=True):
        tokens, length = best["tokens"], len(best["tokens"]) + best["finished"]
        hypothesis = model.identity.prompt.text(tokens, search.first_line)
        row = {"id": sentence["id"], "hypothesis": hypothesis, "length": length, "tokens": tokens}
        rows.append(row | {"logprob": best["logprob"], "calls": length})
    return rows


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Totals over the rows; ``unfinished`` counts those that were cut before an EOS."""
    unfinished = sum(row["length"] == len(row["tokens"]) for row in rows)
    return {"sentences": len(rows), "unfinished": unfinished, "calls": sum(row["calls"] for row in rows)}


def signature(model: RunModel, search: Search) -> dict[str, Any]:
    """What the hypotheses depend on beside the data: the decoder, the backbone and the adapter."""
    return model.signature(
        LIBRARY,
        f"beam{search.beams}",
        f"lp{search.length_penalty:g}",
        model.precision,
        f"max{search.max_new_tokens}",
        *([] if search.early_stopping else ["heuristic"]),
        *(["line1"] if search.first_line else []),
    )


@dataclass(frozen=True)
class Task:
    """A prompt to go on from, by at most ``limit`` tokens."""

    prompt: Sequence[int]
    limit: int


@dataclass(frozen=True)
class Hypothesis:
    """The best hypothesis: its tokens before the EOS, whether there was one, and the mean log-probability of all."""

    tokens: list[int]
    finished: bool
    logprob: float


class BeamSearch:
    """Runs tasks on a causal backbone, at most ``budget`` tokens in the caches of a batch (a longer task runs alone).

    Where a device has no memory for a batch, the budget becomes half of what the batch had asked for.
    """

    def __init__(self, backbone: Backbone, search: Search, ledger: Ledger | None = None, budget: int | None = None):
        self._backbone, self._settings, self.ledger = backbone, search, ledger or Ledger()
        self._budget = budget or _BUDGET[backbone.device.type]

    @functools.cached_property
    def _stock(self) -> Any:
        from entropy_valley.model.load import stock_model

        return stock_model(self._backbone.family, self._backbone.model, "sdpa")

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Hypothesis]]:
        """(place, best hypothesis) of each task, batch by batch, the longest first."""
        queue = deque(sorted(range(len(tasks)), key=lambda place: (-tasks[place].limit, -len(tasks[place].prompt))))
        while queue:
            places = self._next(queue, tasks)
            results = self._attempt([tasks[place] for place in places])
            queue.extendleft(reversed(places[len(results) :]))
            yield from zip(places, results, strict=False)

    def _next(self, queue: deque[int], tasks: Sequence[Task]) -> list[int]:
        """The head of the queue, as far as limits are equal and the budget goes; at least one task."""
        places = [queue.popleft()]
        first = tasks[places[0]]
        while queue and tasks[queue[0]].limit == first.limit and self._cost(first, len(places) + 1) <= self._budget:
            places.append(queue.popleft())
        return places

    def _cost(self, longest: Task, count: int) -> int:
        """Tokens in the caches of ``count`` padded tasks by the end of their search."""
        return count * self._settings.beams * (len(longest.prompt) + longest.limit)

    def _attempt(self, batch: list[Task]) -> list[Hypothesis]:
        """The result of each task; none, and a smaller budget, where the memory did not suffice."""
        import torch

        try:
            with torch.inference_mode():
                eos, new = self._backbone.eos_id, self._generate(batch)
                return [
                    Hypothesis(tokens[:-1], True, logprob) if tokens[-1] == eos else Hypothesis(tokens, False, logprob)
                    for tokens, logprob in zip(new, self._logprobs(batch, new), strict=True)
                ]
        except torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
            self._budget = self._cost(batch[0], len(batch)) // 2
        torch.cuda.empty_cache()  # only here is the failed pass's memory no longer held by the exception
        return []

    def _generate(self, batch: Sequence[Task]) -> list[list[int]]:
        """The new tokens of tasks with one limit, the longest prompt first: all up to and with the EOS."""
        import torch
        from transformers import GenerationConfig

        settings, model = self._settings, self._stock
        eos, width = self._backbone.eos_id, len(batch[0].prompt)
        padding = [width - len(task.prompt) for task in batch]
        ids = [[eos] * pad + [*task.prompt] for pad, task in zip(padding, batch, strict=True)]
        mask = [[0] * pad + [1] * (width - pad) for pad in padding]
        # Nothing is drawn; :class:`Search` says when the search of a sentence ends.
        config = GenerationConfig(
            do_sample=False,
            num_beams=settings.beams,
            length_penalty=settings.length_penalty,
            early_stopping=settings.early_stopping and settings.beams > 1,
            max_new_tokens=batch[0].limit,
            eos_token_id=eos,
            pad_token_id=eos,
            return_dict_in_generate=True,
        )
        model.generation_config = config  # else what the config leaves open would come from the model's own
        output = model.generate(
            torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            generation_config=config,
        )
        rows, cached = len(batch) * self._settings.beams, output.past_key_values.get_seq_length()
        passes = 1 + cached - width
        self.ledger.count(passes=passes, tokens=rows * cached, rows=rows * passes)
        return [row[: row.index(eos) + 1] if eos in row else row for row in output.sequences[:, width:].tolist()]

    def _logprobs(self, batch: Sequence[Task], new: Sequence[list[int]]) -> list[float]:
        """The mean log-probability of each task's new tokens: those of a sequence speak through the row before."""
        import torch
        from torch.nn.functional import cross_entropy

        from entropy_valley.model.attention import pack

        model = self._backbone.model
        inputs = [[*task.prompt, *tokens[:-1]] for task, tokens in zip(batch, new, strict=True)]
        states = model.hidden_states(pack(inputs, model.device)).split([len(sequence) for sequence in inputs])
        self.ledger.count(passes=1, tokens=sum(map(len, inputs)), rows=sum(map(len, new)))
        # The head sentence by sentence: a large vocabulary's logits of a whole batch would be gigabytes.
        return [
            round(-cross_entropy(logits, torch.tensor(tokens, device=logits.device)).item(), 4)
            for state, tokens in zip(states, new, strict=True)
            for logits in [model.lm_head(state[-len(tokens) :]).float()]
        ]
