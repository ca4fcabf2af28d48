"""How fast the decoder is, against what public samplers do and against what the machine could give.

    python benchmarks/decoding.py                     # both shapes: a table, CSV and a plot
    python benchmarks/decoding.py --shapes body-heavy --sentences 24             # as in docs/performance.md
    python benchmarks/decoding.py --shapes real-vocabulary --sentences 12
    python benchmarks/decoding.py --shapes small --rounds 3
    python benchmarks/decoding.py --peer authors=FOLDER llada=FOLDER dllm=FOLDER fast-dllm=FOLDER     # their clones
    python benchmarks/decoding.py --device cuda --shapes 8b --methods engine --fill 4096 --compile-layers

Random weights, WMT22 En→Zh lengths, the paper's T = 32, its grid and its ratio. All methods of a shape take turns in
one process; a figure is the median over the rounds. That all fill the same canvases is counted, not assumed, but for
prefix attention, under which the model is another function. The public server dlmserve, which reports a speed-up of 2.5
with the same tokens, is not measured.
"""

import argparse
import dataclasses
import functools
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import peers
import torch
from baselines import Padded
from machine import arguments, describe, matmul_rate, peak_memory, seconds, write
from plots import speed_figure
from workload import LENGTHS, SHAPES, Workload, flops, make

from entropy_valley.decoding.canvas import CachePolicy, Canvas, Ledger
from entropy_valley.decoding.engine import BUDGET, Engine
from entropy_valley.decoding.requests import Denoising, Runner
from entropy_valley.lengths import make_method
from entropy_valley.lengths.base import candidate_length
from entropy_valley.model.prompt import BOTH_WAYS, PREFIX

STEPS = 32
RATIOS = {"EV": (0.70, 0.75, 0.80, 0.85, 0.90), "Ratio": (0.80,)}
EXACT, PREFIXED = "engine", "engine, prefix attention"
CACHED = {f"engine, prompt cache {k}": k for k in (2, 4)} | {"engine, prompt cache never renewed": sys.maxsize}
ENGINES = {EXACT: None, PREFIXED: None, **CACHED}  # by method, in how many passes: see decoding/prompts.py
ALONE, PADDED, SKIPPING = "one by one", "padded", "padded, empty steps skipped"
METHODS = (*ENGINES, ALONE, PADDED, SKIPPING)
PAIRS = {"EV": (*ENGINES, ALONE, PADDED), "Ratio": (*ENGINES, SKIPPING)}  # what is compared unless --all
PEAK_SENTENCES, PEAK_STEPS = 16, 4  # the longest ones, one padded batch; more steps would hold no more


@dataclass(frozen=True)
class Run:
    """What one round gave: each canvas's tokens, the passes of single canvases, and what was run.

    ``needed``: floating-point operations that no exact decoder can spare; None for all but the exact engine.
    """

    filled: list[list[int]]
    passes: int
    ledger: Ledger
    needed: float | None = None


def run(workload: Workload, length_method: str, method: str, steps: int, **settings: Any) -> Run:
    """Decode the whole workload once; ``settings`` are those of the :class:`Engine`."""
    if method in ENGINES:
        return run_engine(workload, RATIOS[length_method], steps, method, **settings)
    ledger = Ledger()
    padded = Padded(workload.backbone, ledger, batch=1 if method == ALONE else 16, skip=method == SKIPPING)
    filled = padded.decode(workload.sentences, workload.prompts, RATIOS[length_method], steps)
    return Run(filled, ledger["passes"], ledger)


def run_engine(workload: Workload, ratios: Sequence[float], steps: int, method: str = EXACT, **settings: Any) -> Run:
    """Decode the workload with this package's engine: several ratios by Entropy-Valley, one as Fixed Ratio with a slot
    for the EOS, as the rivals have it."""
    of_ratio = {"ratios": ratios[0], "reserve_eos_slot": True}
    length_method = make_method("ev", {"ratios": ratios}) if len(ratios) > 1 else make_method("ratio", of_ratio)
    ledger = Ledger()
    denoising = Denoising.named("med", steps, "llada")
    backbone = dataclasses.replace(workload.backbone, attention=PREFIX if method == PREFIXED else BOTH_WAYS)
    engine, refresh = Engine(backbone, ledger, **settings), ENGINES[method]
    sentences, works = workload.in_prompts(refresh and CachePolicy(refresh)), []
    for place, sentence in enumerate(workload.sentences):
        works.append((place, sentences.translating(length_method, place, sentence, denoising)))
    done = dict(Runner(lambda: engine, ledger).run(works, denoising.order))
    filled, passes = [], []
    for place, prompt in enumerate(workload.prompts):
        row, decoded = done[place]
        probed, length = row["candidates"] if row["calls"] else [], row["length"]
        masked = denoising.masked(length, decoded[length].passes)
        filled.append(decoded[length].tokens)
        passes += [(len(prompt) + one, one) for one in probed]
        passes += [(len(prompt) + length, count) for count in masked[int(length in probed and method not in CACHED) :]]
    return Run(filled, len(passes), ledger, flops(workload.shape, passes) if method == EXACT else None)


def compare(shape: str, options: argparse.Namespace) -> pd.DataFrame:
    """One row for each length method and way to decode: medians over the rounds, of ratios too."""
    workload = make(SHAPES[shape], options.device, options.sentences, options.lengths)
    pairs = [
        (length_method, method)
        for length_method in RATIOS
        for method in options.methods
        if options.all or method in PAIRS[length_method]
    ]
    times: dict[tuple[str, str], list[float]] = {pair: [] for pair in pairs}
    runs, rates = {}, []
    for number in range(options.rounds):
        rates.append(ceiling(shape, options))
        for pair in pairs:
            task = functools.partial(run, workload, *pair, STEPS, **_settings(options))
            spent, runs[pair] = seconds(task, options.device)
            times[pair].append(spent)
            sys.stderr.write(f"{shape}, round {number + 1}: {', '.join(pair)} {spent:.2f} s\n")
    rate = statistics.median(rates)
    rows = [_row(runs[pair], times[pair], rate) | _against(pair, runs, times) for pair in pairs]
    table = pd.DataFrame(rows, index=pd.MultiIndex.from_tuples(pairs, names=["length_method", "method"])).reset_index()
    table.insert(0, "shape", shape)
    table["peak_memory_mib"] = [_peak(shape, *pair, options) / 2**20 for pair in pairs]
    return table


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Of the engine."""
    return {name: getattr(options, name) for name in ("budget", "fill", "compile_layers")}


def ceiling(shape: str, options: argparse.Namespace) -> float:
    """The matmul rate at the sizes of the body, with as many rows as a full pass has."""
    budget = options.fill or options.budget or BUDGET[options.device]
    return matmul_rate(options.device, budget, SHAPES[shape].width, SHAPES[shape].ffn)


def _row(run: Run, times: list[float], rate: float) -> dict[str, Any]:
    sentences, spent = len(run.filled), statistics.median(times)
    return {
        "sentences": sentences,
        "rounds": len(times),
        "seconds_per_sentence": spent / sentences,
        "sentences_per_second": sentences / spent,
        "passes_per_sentence": run.passes / sentences,
        "tokens_per_sentence": run.ledger["tokens"] / sentences,
        "head_rows_per_sentence": run.ledger["rows"] / sentences,
        "matmul_gflops": rate / 1e9,
        "over_floor": spent * rate / run.needed if run.needed else float("nan"),
    }


def _against(pair: tuple[str, str], runs: dict[Any, Run], times: dict[Any, list[float]]) -> dict[str, Any]:
    """How many times as long as the engine, round by round, and how many canvases are filled otherwise."""
    ours = pair[0], EXACT
    if ours not in runs:
        return {}
    ratios = [one / own for one, own in zip(times[pair], times[ours], strict=True)]
    different = sum(one != own for one, own in zip(runs[pair].filled, runs[ours].filled, strict=True))
    other = {} if pair[1] == PREFIXED else {"other_canvases": different}
    return {"times_engine": statistics.median(ratios), "least": min(ratios), **other}


def _peak(shape: str, length_method: str, method: str, options: argparse.Namespace) -> float:
    """Peak bytes beside the model, measured in a process of its own."""
    if options.no_memory:
        return float("nan")
    given = [sys.executable, __file__, "--shapes", shape, "--peak", length_method, method, "--device", options.device]
    given += ["--lengths", str(options.lengths), "--threads", str(torch.get_num_threads())]
    given += [
        part for name in ("budget", "fill") if (count := getattr(options, name)) for part in (f"--{name}", str(count))
    ]
    given += ["--compile-layers"] * options.compile_layers
    return float(subprocess.run(given, check=True, capture_output=True, text=True).stdout)


def _print_peak(options: argparse.Namespace) -> None:
    workload = make(SHAPES[options.shapes[0]], options.device, None, options.lengths)
    longest = workload.longest(PEAK_SENTENCES)
    print(peak_memory(lambda: run(longest, *options.peak, PEAK_STEPS, **_settings(options)), options.device))


def beside_peers(shape: str, options: argparse.Namespace) -> Iterator[str]:
    """Public decoders beside the engine on canvases of Fixed Ratio, those that have one slot a step."""
    workload = make(SHAPES[shape], options.device, options.sentences, options.lengths)
    counts = Denoising.named("med", STEPS, "llada").counts
    lengths = [candidate_length(*RATIOS["Ratio"], one.source_tokens) for one in workload.sentences]
    given = zip(workload.prompts, lengths, strict=True)
    canvases = [Canvas(prompt, length, counts(length)) for prompt, length in given]
    return peers.compare(workload.backbone, canvases, peers.folders(options.peer))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["body-heavy", "real-vocabulary"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--all", action="store_true", help="every method for both length methods")
    parser.add_argument("--sentences", type=int, help="of a round; default: as the shape has it")
    parser.add_argument("--lengths", type=Path, default=LENGTHS, help="source tokens, one number a line")
    parser.add_argument("--budget", type=int, help="most tokens in a pass of the engine")
    parser.add_argument(
        "--fill", type=int, help="pad each pass of the engine to so many tokens, as jobs on a GPU do: 4096"
    )
    parser.add_argument("--compile-layers", action="store_true", help="compile the layers of such passes")
    parser.add_argument("--no-memory", action="store_true", help="do not measure peaks")
    of_peers = "time public decoders instead, from their clones; their code is executed"
    parser.add_argument("--peer", nargs="+", metavar="NAME=FOLDER", help=of_peers)
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        _print_peak(options)
        return
    if options.peer:
        print(describe(options.device))
        for shape in options.shapes:
            for line in beside_peers(shape, options):
                print(f"{shape}: {line}", flush=True)
        return
    table = pd.concat([compare(shape, options) for shape in options.shapes])
    write(table, options.out / "decoding")
    speed_figure(table, options.out / "decoding")
    print(f"{describe(options.device)}\n\n{table.round(3).to_string(index=False)}")


if __name__ == "__main__":
    main()
