"""Reports of a training run: TensorBoard scalars, a progress bar, and the history of losses."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from entropy_valley.progress import progress

Report = Callable[[dict[str, float]], None]
HISTORY = ("loss", "cross_entropy", "learning_rate", "gradient_norm")


def history_csv(history: Sequence[Sequence[float]]) -> str:
    """The values of ``HISTORY`` at each optimiser step, from 1, with six significant digits."""
    rows = ((str(step), *(f"{value:.6g}" for value in values)) for step, values in enumerate(history, 1))
    return "".join(",".join(row) + "\n" for row in (("step", *HISTORY), *rows))


class _Reporter:
    """Takes the scalars of each finished step."""

    def __init__(self, board: Any, bar: Any, every: int) -> None:
        self._board, self._bar, self._every = board, bar, every
        self._last = time.perf_counter()

    def __call__(self, scalars: dict[str, float]) -> None:
        now = time.perf_counter()
        rate, self._last = scalars.pop("tokens") / (now - self._last), now
        self._bar.set_postfix(ce=round(scalars["cross_entropy"], 3), refresh=False)
        self._bar.update()
        if self._bar.n % self._every == 0:
            for name, value in (scalars | {"tokens_per_second": rate}).items():
                self._board.add_scalar(name, value, self._bar.n)


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
        yield _Reporter(board, bar, every)
