"""Progress bars: live on a terminal, a plain line from time to time in a log."""

from __future__ import annotations

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
    live = sys.stderr.isatty()
    return tqdm(
        iterable,
        total=total,
        initial=initial,
        desc=description,
        unit=unit,
        file=None if live else _LogLines(),
        ascii=not live,
        mininterval=0.1 if live else 15,
        delay=0 if live else 1e-9,  # no line before the first step
        maxinterval=10 if live else 60,
        ncols=None if live else 100,
    )


class _LogLines:
    """A stderr that prints each refresh of the bar as a line."""

    def write(self, text: str) -> None:
        text = text.strip("\r\n\x1b[A ")
        if text:
            sys.stderr.write(text + "\n")

    def flush(self) -> None:
        sys.stderr.flush()
