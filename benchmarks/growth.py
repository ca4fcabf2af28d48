"""How the decoder's cost grows with sentences, steps, canvas length and candidates.

    python benchmarks/growth.py

Entropy-Valley on a small random-weight model; each quantity is varied by itself, medians over rounds in which all
take turns.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import torch
from decoding import RATIOS, STEPS, Run, run_engine
from machine import arguments, describe, peak_memory, seconds, write
from plots import growth_figure
from workload import SHAPES, make

SHAPE, SENTENCES = SHAPES["small"], 24
GRIDS = {
    count: tuple(round(0.8 + 0.05 * (place - count // 2), 2) for place in range(count)) for count in (1, 3, 5, 9, 15)
}


def settings() -> dict[tuple[str, float], dict[str, Any]]:
    """(what grows, its value) and how the decoder is then run, from the same middle."""
    return {
        **{("sentences", count): {"sentences": count} for count in (12, 24, 48, 96, 192)},
        **{("steps T", steps): {"steps": steps} for steps in (2, 4, 8, 16, 32, 64, 128)},
        **{("source length, times WMT22's", scale): {"scale": scale} for scale in (0.5, 1, 2, 4)},
        **{("ratios in the grid", count): {"ratios": grid} for count, grid in GRIDS.items()},
    }


def measure(device: str, rounds: int) -> pd.DataFrame:
    """One row for each setting."""
    tasks = {key: _task(device, **change) for key, change in settings().items()}
    times: dict[tuple[str, float], list[float]] = {key: [] for key in tasks}
    for _ in range(rounds):
        for key, (_, task) in tasks.items():
            spent, _ = seconds(task, device)
            times[key].append(spent)
    rows = []
    for (name, value), (count, task) in tasks.items():
        run, spent = task(), statistics.median(times[name, value])
        rows.append(
            {
                "grows": name,
                "value": value,
                "seconds_per_sentence": spent / count,
                "passes_per_sentence": run.passes / count,
                "tokens_per_sentence": run.ledger["tokens"] / count,
                "engine_passes": run.ledger["passes"],
                "peak_memory_mib": peak_memory(task, device) / 2**20,
            }
        )
    return pd.DataFrame(rows)


def _task(
    device: str,
    sentences: int = SENTENCES,
    steps: int = STEPS,
    scale: float = 1.0,
    ratios: Sequence[float] = RATIOS["EV"],
) -> tuple[int, Callable[[], Run]]:
    """How many sentences, and what decodes them."""
    workload = make(SHAPE, device, sentences, scale=scale)
    return sentences, lambda: run_engine(workload, ratios, steps)


def main() -> None:
    options = arguments(__doc__, rounds=3).parse_args()
    torch.set_num_threads(options.threads)
    table = measure(options.device, options.rounds)
    write(table, options.out / "growth")
    growth_figure(table, options.out / "growth")
    print(f"{describe(options.device)}\n\n{table.round(4).to_string(index=False)}")


if __name__ == "__main__":
    main()
