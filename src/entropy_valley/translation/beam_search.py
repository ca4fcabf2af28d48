"""Beam search with an autoregressive backbone.

The search is transformers' own ``generate`` on the stock class. Around it: batches of prompts of similar length, padded
on the left and masked by position (the pad is the EOS); a configuration that names every option, so that no sampling
default of a checkpoint leaks in; and the log-probability of the best hypothesis, read in one packed pass, because
``generate`` would keep the scores of every step and token for it.
"""

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


def beam_search(
    backbone: Backbone, search: Search, tasks: Sequence[Task], ledger: Ledger, budget: int | None = None
) -> Iterator[tuple[int, Hypothesis]]:
    """(place, best hypothesis) of each task of a causal backbone, batch by batch, the longest first.

    At most ``budget`` tokens are in the caches of a batch by its end (a longer task runs alone). Where a device has no
    memory for a batch, the budget becomes half of what the batch had asked for.
    """
    budget = budget or _BUDGET[backbone.device.type]
    stock = stock_model(backbone.family, backbone.model, "sdpa")
    waiting = sorted(range(len(tasks)), key=lambda place: (-tasks[place].limit, -len(tasks[place].prompt)))
    while waiting:
        longest = tasks[waiting[0]]
        cost = search.beams * (len(longest.prompt) + longest.limit)  # of each, padded
        first = waiting[: max(1, budget // cost)]
        places = [place for place in first if tasks[place].limit == longest.limit]
        batch, hypotheses = [tasks[place] for place in places], []
        try:
            with torch.inference_mode():
                new = _generated(stock, backbone.eos_id, batch, search, ledger)
                for tokens, logprob in zip(new, _logprobs(backbone, batch, new, ledger), strict=True):
                    finished = tokens[-1] == backbone.eos_id
                    hypotheses.append(Hypothesis(tokens[:-1] if finished else tokens, finished, logprob))
        except torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
            budget, places = cost * len(batch) // 2, []
        if not places:
            torch.cuda.empty_cache()  # only here is the failed pass's memory no longer held by the exception
        waiting = waiting[len(places) :]
        yield from zip(places, hypotheses, strict=False)


def _generated(stock: Any, eos: int, batch: Sequence[Task], search: Search, ledger: Ledger) -> list[list[int]]:
    """The new tokens of tasks with one limit, the longest prompt first: all up to and with the EOS."""
    width = len(batch[0].prompt)
    padding = [width - len(task.prompt) for task in batch]
    ids = [[eos] * pad + [*task.prompt] for pad, task in zip(padding, batch, strict=True)]
    mask = [[0] * pad + [1] * (width - pad) for pad in padding]
    # Nothing is drawn; :class:`Search` says when the search of a sentence ends.
    config = GenerationConfig(
        do_sample=False,
        num_beams=search.beams,
        length_penalty=search.length_penalty,
        early_stopping=search.early_stopping and search.beams > 1,
        max_new_tokens=batch[0].limit,
        eos_token_id=eos,
        pad_token_id=eos,
        return_dict_in_generate=True,
    )
    stock.generation_config = config  # else what the config leaves open would come from the model's own
    output = stock.generate(
        torch.tensor(ids, device=stock.device),
        attention_mask=torch.tensor(mask, device=stock.device),
        generation_config=config,
    )
    rows, cached = len(batch) * search.beams, output.past_key_values.get_seq_length()
    passes = 1 + cached - width
    ledger.update(passes=passes, tokens=rows * cached, rows=rows * passes)
    return [row[: row.index(eos) + 1] if eos in row else row for row in output.sequences[:, width:].tolist()]


def _logprobs(backbone: Backbone, batch: Sequence[Task], new: Sequence[list[int]], ledger: Ledger) -> list[float]:
    """The mean log-probability of each task's new tokens: those of a sequence speak through the row before."""
    model = backbone.model
    inputs = [[*task.prompt, *tokens[:-1]] for task, tokens in zip(batch, new, strict=True)]
    states = model.hidden_states(pack(inputs, model.device)).split([len(sequence) for sequence in inputs])
    ledger.update(passes=1, tokens=sum(map(len, inputs)), rows=sum(map(len, new)))
    means = []
    for state, tokens in zip(states, new, strict=True):
        # The head sentence by sentence: a large vocabulary's logits of a whole batch would be gigabytes.
        logits = model.lm_head(state[-len(tokens) :]).float()
        loss = cross_entropy(logits, torch.tensor(tokens, device=logits.device))
        means.append(round(-loss.item(), 4))
    return means
