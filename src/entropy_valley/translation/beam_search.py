"""Beam search with an autoregressive backbone.

The search is transformers' own ``generate`` on the stock class. Around it: batches of prompts of similar length, padded
on the left and masked by position (the pad is the EOS); a configuration that names every option, so that no sampling
default of a checkpoint leaks in; and the log-probability of the best hypothesis, read in one packed pass, because
``generate`` would keep the scores of every step and token for it.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig

from entropy_valley.decoding.canvas import Ledger
from entropy_valley.model.attention import pack
from entropy_valley.model.load import Backbone, stock_model
from entropy_valley.translation.settings import Search

_BUDGET = {"cpu": 2**14, "cuda": 2**17}  # tokens in the caches of a batch


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
        self._backbone, self._settings = backbone, search
        self.ledger = Ledger() if ledger is None else ledger
        self._budget = budget or _BUDGET[backbone.device.type]

    @functools.cached_property
    def _stock(self) -> Any:
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
        try:
            with torch.inference_mode():
                new = self._generate(batch)
                hypotheses = []
                for tokens, logprob in zip(new, self._logprobs(batch, new), strict=True):
                    finished = tokens[-1] == self._backbone.eos_id
                    hypotheses.append(Hypothesis(tokens[:-1] if finished else tokens, finished, logprob))
                return hypotheses
        except torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
            self._budget = self._cost(batch[0], len(batch)) // 2
        torch.cuda.empty_cache()  # only here is the failed pass's memory no longer held by the exception
        return []

    def _generate(self, batch: Sequence[Task]) -> list[list[int]]:
        """The new tokens of tasks with one limit, the longest prompt first: all up to and with the EOS."""
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
        self.ledger.update(passes=passes, tokens=rows * cached, rows=rows * passes)
        return [row[: row.index(eos) + 1] if eos in row else row for row in output.sequences[:, width:].tolist()]

    def _logprobs(self, batch: Sequence[Task], new: Sequence[list[int]]) -> list[float]:
        """The mean log-probability of each task's new tokens: those of a sequence speak through the row before."""
        model = self._backbone.model
        inputs = [[*task.prompt, *tokens[:-1]] for task, tokens in zip(batch, new, strict=True)]
        states = model.hidden_states(pack(inputs, model.device)).split([len(sequence) for sequence in inputs])
        self.ledger.update(passes=1, tokens=sum(map(len, inputs)), rows=sum(map(len, new)))
        means = []
        for state, tokens in zip(states, new, strict=True):
            # The head sentence by sentence: a large vocabulary's logits of a whole batch would be gigabytes.
            logits = model.lm_head(state[-len(tokens) :]).float()
            loss = cross_entropy(logits, torch.tensor(tokens, device=logits.device))
            means.append(round(-loss.item(), 4))
        return means
