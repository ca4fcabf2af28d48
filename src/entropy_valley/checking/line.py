"""One line for each check: its name, how it ended, and what was measured."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from entropy_valley.errors import InputError

OK, FAILED, SKIPPED = "ok", "failed", "skipped"
Check = Callable[[], str]


class CheckError(Exception):
    """A check that found what will go wrong. The message has the numbers and the remedy."""


class SkippedError(Exception):
    """A check that says nothing here. The message has the reason."""


@dataclass(frozen=True)
class Line:
    """The outcome of a check, and the seconds it took."""

    name: str
    state: str
    text: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.state:8}{self.name:26}{self.text} ({self.seconds:.1f} s)"


def run(checks: Iterable[tuple[str, Check]]) -> Iterator[Line]:
    """The line of each check, as soon as it is known. An exception of any kind is a failure."""
    for name, check in checks:
        started = time.monotonic()
        state, text = _outcome(check)
        yield Line(name, state, " ".join(text.split()), round(time.monotonic() - started, 1))


def _outcome(check: Check) -> tuple[str, str]:
    try:
        return OK, check()
    except SkippedError as reason:
        return SKIPPED, str(reason)
    except (CheckError, InputError) as reason:
        return FAILED, str(reason)
    except Exception as error:
        traceback.print_exc()  # stderr has what one line has no room for
        return FAILED, f"{type(error).__name__}: {error}"
