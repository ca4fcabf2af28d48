"""Reports of a training run: TensorBoard scalars, Weights & Biases if wanted, a progress bar, the history of losses."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.progress import progress

Report = Callable[[dict[str, float]], None]
HISTORY = ("loss", "cross_entropy", "learning_rate", "gradient_norm")


def history_csv(history: Sequence[Sequence[float]]) -> str:
    """The values of ``HISTORY`` at each optimiser step, from 1, with six significant digits."""
    rows = [["step", *HISTORY]]
    for step, values in enumerate(history, 1):
        rows.append([str(step), *(f"{value:.6g}" for value in values)])
    return "".join(",".join(row) + "\n" for row in rows)


def _wandb(settings: Mapping[str, str], folder: Path) -> Any:
    """A run of Weights & Biases, which ends with its block; what is not yet sent is kept in ``folder``."""
    try:
        import wandb
    except ImportError as error:
        remedy = "Install it into the environment of the training (pip install wandb) or remove the key."
        raise InputError("training.wandb", f"the package cannot be imported ({error})", remedy) from None
    folder.mkdir(parents=True, exist_ok=True)
    return wandb.init(**settings, dir=folder, resume="allow")


def require_finite(scalars: Mapping[str, float], step: int, steps: int, place: object) -> None:
    """Raise InputError for a step (from 0) whose loss or gradient is not finite: no later one would be."""
    if not all(map(math.isfinite, scalars.values())):
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in scalars.items())
        problem = f"the loss is not finite at step {step + 1} of {steps} ({shown})"
        raise InputError(place, problem, "The training diverges: lower its `learning_rate`, or raise its `warmup`.")


@contextlib.contextmanager
def reports(
    logs: Path, start: int, steps: int, description: str, every: int = 1, wandb: Mapping[str, str] | None = None
) -> Iterator[Report]:
    """Yield a function that takes the scalars of each finished step, in order, from step ``start``.

    ``tokens`` (of the step) is logged as tokens per second, and the bar shows ``cross_entropy``. Every ``every``-th
    step goes to TensorBoard, where steps beyond ``start`` that a killed run logged are hidden. It also goes to the run
    of Weights & Biases with the project, name and id in ``wandb``: a training that goes on has the same id.
    """
    from torch.utils.tensorboard import SummaryWriter

    with (
        files.naming(logs),
        SummaryWriter(logs, purge_step=start + 1) as board,
        _wandb(wandb, logs) if wandb else contextlib.nullcontext() as run,
        progress(total=steps, description=description, unit="step", initial=start) as bar,
    ):
        last = time.perf_counter()

        def report(scalars: dict[str, float]) -> None:
            nonlocal last
            now = time.perf_counter()
            rate, last = scalars.pop("tokens") / (now - last), now
            bar.set_postfix(ce=round(scalars["cross_entropy"], 3), refresh=False)
            bar.update()
            if bar.n % every == 0:
                values = scalars | {"tokens_per_second": rate}
                for name, value in values.items():
                    board.add_scalar(name, value, bar.n)
                if run:
                    run.log(values, step=bar.n)

        yield report
