"""Reports of a training run: TensorBoard scalars, a progress bar, the history of losses."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from entropy_valley import files
from entropy_valley.errors import InputError
from entropy_valley.progress import progress

Report = Callable[[dict[str, float]], None]
HISTORY = ("loss", "cross_entropy", "learning_rate", "gradient_norm")


def history_csv(history: Sequence[Sequence[float]]) -> str:
    """The values of ``HISTORY`` at each optimiser step, from 1, with six significant digits."""
    lines = [",".join(["step", *HISTORY])]
    for step, values in enumerate(history, start=1):
        lines.append(",".join([str(step), *(f"{value:.6g}" for value in values)]))
    return "\n".join(lines) + "\n"


def require_finite(scalars: Mapping[str, float], step: int, steps: int, place: object) -> None:
    """Raise InputError for a step (from 0) whose loss or gradient is not finite: no later one would be."""
    if not all(map(math.isfinite, scalars.values())):
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in scalars.items())
        problem = f"the loss is not finite at step {step + 1} of {steps} ({shown})"
        raise InputError(place, problem, "The training diverges: lower its `learning_rate`, or raise its `warmup`.")


@contextlib.contextmanager
def reports(logs: Path, start: int, steps: int, description: str, every: int = 1) -> Iterator[Report]:
    """Yield a function that takes the scalars of each finished step, in order, from step ``start``.

    ``tokens`` (of the step) is logged as tokens per second, and the bar shows ``cross_entropy``. Every ``every``-th
    step goes to TensorBoard, where steps beyond ``start`` that a killed run logged are hidden.
    """
    from torch.utils.tensorboard import SummaryWriter

    with (
        files.naming(logs),
        SummaryWriter(logs, purge_step=start + 1) as board,
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
                for name, value in (scalars | {"tokens_per_second": rate}).items():
                    board.add_scalar(name, value, bar.n)

        yield report
