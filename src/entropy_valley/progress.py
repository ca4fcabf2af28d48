"""Progress bars: live on a terminal, a plain line from time to time in a log."""

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress(
    iterable: Iterable[Any] | None = None,
    total: int | None = None,
    description: str = "",
    unit: str = "it",
    initial: int = 0,
) -> tqdm:
    """A tqdm bar on stderr. If stderr is not a terminal, it prints a line at most every 15 seconds.

    ``initial``: how many were done before; the speed is that of the others.
    """
    in_log: dict[str, Any] = {}
    if not sys.stderr.isatty():  # with the delay, there is no line before the first step
        in_log = dict(file=_LogLines(), ascii=True, mininterval=15, maxinterval=60, delay=1e-9, ncols=100)
    return tqdm(iterable, total=total, initial=initial, desc=description, unit=unit, **in_log)


class _LogLines:
    """A stderr that prints each refresh of the bar as a line."""

    def write(self, text: str) -> None:
        text = text.strip("\r\n\x1b[A ")
        if text:
            sys.stderr.write(text + "\n")

    def flush(self) -> None:
        sys.stderr.flush()
