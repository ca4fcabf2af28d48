"""Reports of a training run: TensorBoard scalars, a progress bar, and the history of losses."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from entropy_valley.progress import progress

Report = Callable[[dict[str, float]], None]
HISTORY = ("loss", "cross_entropy", "learning_rate", "gradient_norm")


def history_csv(history: Sequence[Sequence[float]]) -> str:
    """The values of ``HISTORY`` at each optimiser step, from 1, with six significant digits."""
    rows = ((str(step), *(f"{value:.6g}" for value in values)) for step, values in enumerate(history, 1))
    return "".join(",".join(row) + "\n" for row in (("step", *HISTORY), *rows))


@contextlib.contextmanager
def reports(logs: Path, start: int, steps: int, description: str, every: int = 1) -> Iterator[Report]:
    """Yield a function that takes the scalars of each finished step, in order, from step ``start``.

    ``tokens`` (of the step) is logged as tokens per second, and the bar shows ``cross_entropy``. Every ``every``-th
    step goes to TensorBoard; steps beyond ``start`` that a killed run logged are hidden.
    """
    from torch.utils.tensorboard import SummaryWriter

    with (
        SummaryWriter(logs, purge_step=start + 1) as board,
        progress(total=steps, description=description, unit="step") as bar,
    ):
        bar.update(start)
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
