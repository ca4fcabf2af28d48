"""Where the time of a decode goes, and what a layer computed in another form would change.

    python benchmarks/layers.py --shapes body-heavy --sentences 12 --passes 5
    python benchmarks/layers.py --shapes tiny
    python benchmarks/layers.py --device cuda --shapes 8b

First the share of each kind of operation in a whole EV decode. Then the model runs the same passes again, now and in
each other form in turn; a ratio is the median over the rounds, and of the states every bit is compared.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import pandas as pd
import torch
import transformers.models.llama.modeling_llama as llama
from decoding import RATIOS, STEPS, run_engine
from layer_forms import FORMS, Patch
from machine import arguments, describe, synchronise, write
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from workload import SHAPES, Workload, make

from entropy_valley.decoding import engine
from entropy_valley.model.attention import BIDIRECTIONAL

PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm"}
ENGINE, HEAD = "engine: bookkeeping", "LM head"
KINDS = {
    "norms": (llama.LlamaRMSNorm, "forward"),
    "rotary": (llama, "apply_rotary_pos_emb"),
    "SwiGLU": (llama.LlamaMLP, "forward"),
    "layers: the rest": (engine, "hidden_states"),
    HEAD: (engine, "slot_values"),
}


def shares(workload: Workload, device: str) -> pd.DataFrame:
    """Percent of the time of a decode by kind: inside operations (on a GPU, of its kernels), and, on a CPU, in the
    Python around them; and the operations of a pass. The rotary of the last layer is in ``layers: the rest``."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    attention = mock.patch.dict(
        ALL_ATTENTION_FUNCTIONS._global_mapping,
        {BIDIRECTIONAL: named("attention", ALL_ATTENTION_FUNCTIONS[BIDIRECTIONAL])},
    )
    patches = [(*place, named(kind, getattr(*place))) for kind, place in KINDS.items()]
    run_engine(workload, RATIOS["EV"], STEPS)
    with applied(patches), attention, profile(activities=activities) as seen, record_function("@" + ENGINE):
        passes = run_engine(workload, RATIOS["EV"], STEPS).ledger.passes
    return _by_kind(seen.events(), device, passes)


def named(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its operations marked as of a kind."""

    @functools.wraps(function)
    def marked(*given: Any, **options: Any) -> Any:
        with record_function("@" + kind):
            return function(*given, **options)

    return marked


def _by_kind(events: Sequence[Any], device: str, passes: int) -> pd.DataFrame:
    inside, around, count = Counter(), Counter(), Counter()
    for event in events:
        if event.device_type != DeviceType.CPU:  # a kernel by itself: its time is also that of its operation
            continue
        mark = event
        while mark is not None and not mark.name.startswith("@"):
            mark = mark.cpu_parent
        kind = mark.name[1:] if mark else ENGINE
        if mark is event:
            around[kind] += 0 if device == "cuda" else event.self_cpu_time_total
            continue
        if event.name in PRODUCTS:
            kind = f"products of the {'head' if kind == HEAD else 'layers'}"
        count[kind] += 1
        inside[kind] += event.self_device_time_total if device == "cuda" else event.self_cpu_time_total
    percent = 100 / (inside.total() + around.total())
    rows = [(kind, inside[kind] * percent, around[kind] * percent, count[kind] / passes) for kind in inside | around]
    table = pd.DataFrame(rows, columns=["kind", "operations_percent", "python_percent", "operations_a_pass"])
    return table.sort_values("operations_percent", ascending=False)


def compare(workload: Workload, device: str, rounds: int, most: int | None) -> pd.DataFrame:
    """One row per form: its time relative to the present code, the median, least and most of the rounds, and whether
    all states have the same bits. On a CPU the time is CPU time, which other processes disturb less."""
    passes = recorded(workload, most)
    times: dict[str, list[float]] = {name: [] for name in FORMS}
    equal = dict.fromkeys(FORMS, True)
    for number in range(rounds + 1):  # the first to warm up
        spent = Counter()
        for place, given in enumerate(passes):
            first = (number + place) % len(FORMS)
            names = [*FORMS][first:] + [*FORMS][:first]
            states = {}
            for name in names:
                took, states[name] = _timed(workload.backbone.model, name, given, device)
                spent[name] += took
            equal = {name: same and torch.equal(states[name], states["now"]) for name, same in equal.items()}
        for name in FORMS if number else ():
            times[name].append(spent[name] / spent["now"])
    columns = {"median": statistics.median, "least": min, "most": max}
    rows = [{"form": name} | {key: of(times[name]) for key, of in columns.items()} for name in FORMS]
    return pd.DataFrame(rows).assign(same_bits=equal.values())


def recorded(workload: Workload, most: int | None = None) -> list[Any]:
    """What each pass of a whole EV decode gives to the model; at most so many of them, evenly."""
    passes, run = [], engine.hidden_states

    def record(model: Any, *given: Any) -> torch.Tensor:
        passes.append(given)
        return run(model, *given)

    with applied([(engine, "hidden_states", record)]):
        run_engine(workload, RATIOS["EV"], STEPS)
    return passes[:: -(-len(passes) // (most or len(passes)))]


@torch.inference_mode()
def _timed(model: Any, name: str, given: Sequence[Any], device: str) -> tuple[float, torch.Tensor]:
    with applied(FORMS[name](model)):
        synchronise(device)
        clock = time.perf_counter if device == "cuda" else time.process_time
        start = clock()
        states = engine.hidden_states(model, *given)
        synchronise(device)
        return clock() - start, states


@contextlib.contextmanager
def applied(patches: Sequence[Patch]) -> Iterator[None]:
    """While the block runs, each (owner, attribute) is the third of its patch."""
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(mock.patch.object(*patch))
        yield


def main() -> None:
    parser = arguments(__doc__, rounds=7)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["body-heavy"])
    parser.add_argument("--sentences", type=int, help="default: as the shape has it")
    parser.add_argument("--passes", type=int, help="how many of the passes are compared; default: all")
    parser.set_defaults(threads=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(describe(options.device))
    for shape in options.shapes:
        workload = make(SHAPES[shape], options.device, options.sentences)
        tables = {"shares": shares(workload, options.device)}
        tables["forms"] = compare(workload, options.device, options.rounds, options.passes)
        for name, table in tables.items():
            write(table, options.out / f"layers_{shape}_{name}")
            print(f"\n{shape}: {name}\n{table.round(3).to_string(index=False)}", flush=True)


if __name__ == "__main__":
    main()
