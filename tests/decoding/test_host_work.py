"""What a pass costs its host: how often it waits for a GPU, and how many operations it calls there.

A CPU walks the GPU's road: attention by the kernel, whose stand-in counts as one call, and all of the vocabulary in one
product. A host waits for a GPU when it reads a value, when it asks for rows whose number only the GPU knows, and when
it copies a list there. It does not wait for a copy from pinned memory (:mod:`entropy_valley.model.attention`).
"""

import dataclasses
import random
from collections import Counter

import pytest
import torch
from bench import canvas_of
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from entropy_valley.decoding import engine, head
from entropy_valley.decoding.canvas import ProbeResult, Queue
from entropy_valley.decoding.requests import make_denoiser
from entropy_valley.model import attention
from entropy_valley.model.decoder import Decoder

STEPWISE = {"sig": "stepwise_kl"}
COPIES = {"tensor", "as_tensor", "new_tensor", "tolist", "cpu"}  # python's functions that copy to a GPU or from it
UNSIZED = {"_local_scalar_dense", "nonzero", "masked_select", "bincount", "equal", "_unique2"}


class Copies(TorchFunctionMode):
    def __init__(self, waits):
        super().__init__()
        self.waits = waits

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        self.waits.update([name] if name in COPIES else [])
        return function(*args, **(kwargs or {}))


class Calls(TorchDispatchMode):
    """Counts operations by who calls them: the model, its head with what reduces the logits, or the engine itself;
    and those on the host."""

    def __init__(self, waits):
        super().__init__()
        self.waits, self.calls, self.caller = waits, Counter(), "engine"

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name, kwargs = operation._schema.name.removeprefix("aten::"), kwargs or {}
        self.calls[self.caller] += 1
        flags = name in ("index", "index_put_") and any(one is not None and one.dtype == torch.bool for one in args[1])
        unsized = name == "repeat_interleave" and kwargs.get("output_size") is None
        self.waits.update([name] if flags or unsized or name in UNSIZED else [])
        return operation(*args, **kwargs)

    def of(self, caller, function):
        def called(*given, **options):
            self.caller = caller
            result = function(*given, **options)
            self.caller = "engine"
            return result

        return called


def kernel(query, key, value, starts, key_starts, *longest, **options):
    """Attention as one call."""
    torch.empty_like(query)
    with _disable_current_modes():
        queries, keys = (tuple(bounds.diff().numpy()) for bounds in (starts, key_starts))
        return attention._by_run(query, key, value, attention.Segments(keys, queries), causal=False)


@pytest.fixture
def counted(monkeypatch):
    """Runs a function on the GPU's road; gives (waits, calls)."""
    waits = Counter()
    calls = Calls(waits)
    monkeypatch.setattr(Decoder, "hidden_states", calls.of("model", Decoder.hidden_states))
    for name in ("slot_values", "sourced_values"):
        monkeypatch.setattr(engine, name, calls.of("head", getattr(engine, name)))
    monkeypatch.setattr(attention, "has_kernel", lambda query: True)
    monkeypatch.setattr(attention, "_kernel", lambda: (kernel, ["enable_gqa", "num_splits"]))
    monkeypatch.setattr(head, "_part_by_part", head._divergence_part)
    enter = calls.of("host", engine.Engine._enter)  # whose tensors are there: see the next test

    def entered(*given):
        before = waits["cpu"]
        result = enter(*given)
        waits["cpu"] = before
        return result

    monkeypatch.setattr(engine.Engine, "_enter", entered)
    monkeypatch.setitem(head.BLOCK, "cpu", head.BLOCK["cuda"])

    def count(run):
        with calls, Copies(waits):
            run()
        return waits, calls.calls

    return count


def canvases(backbone, order):
    rng = random.Random(1)
    for _ in range(40):
        sizes, length = (rng.randrange(6, 20), 5), rng.randint(5, 30)
        prompt, sourceless = ([rng.randrange(len(backbone.tokenizer)) for _ in range(size)] for size in sizes)
        if order.looks_at_distractor:
            yield canvas_of(prompt, length, 8, sigs=[rng.random() for _ in range(length)], budget=8)
        else:
            yield canvas_of(prompt, length, 8, sourceless=sourceless if hasattr(order, "sig") else None)


@pytest.mark.parametrize("fill", [None, 600], ids=["as it is", "padded"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [("med", {}), ("random", {}), ("sig_first", STEPWISE), ("hybrid", {"p": 0.5, **STEPWISE}), ("sig_first", {})],
    ids=str,
)
def test_the_host_waits_once_a_pass_and_calls_few_operations(llada, name, settings, fill, counted):
    """Probes, first steps that a probe has told, and steps, all of them in the same passes.

    Before the batch lay on the host, and angles in tables, a pass waited 18 to 25 times. Without the head's, its calls
    were 166 in this model of two layers, and 86 to 119 in the engine.
    """
    order = make_denoiser(name, settings)
    cases, ours = list(canvases(llada, order)), engine.Engine(llada, budget=600, fill=fill)
    queue = Queue((place, dataclasses.replace(case, counts=())) for place, case in enumerate(cases))

    def run():
        for place, result in ours.run(queue, order):
            if isinstance(result, ProbeResult):
                queue.put(place, dataclasses.replace(cases[place], start=result))

    waits, calls = counted(run)
    passes = ours.ledger["passes"]
    assert waits == {"cpu": passes}
    assert calls["model"] < 150 * passes and calls["engine"] < 32 * passes
