"""The exception for bad input, and how a script ends on it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence


class InputError(Exception):
    """The user's input is wrong. The message has the place, the problem and the remedy."""

    def __init__(self, place: object, problem: str, remedy: str) -> None:
        self.place, self.problem, self.remedy = str(place), problem, remedy
        super().__init__(f"{place}: {problem}{'' if problem.endswith('?') else '.'} {remedy}")


class SentenceError(InputError):
    """One sentence of the input cannot be translated; others can."""


class UserCodeError(InputError):
    """A user's own code raised the exception that is this one's cause."""


def refusal(make: Callable[..., object], *arguments: object) -> str | None:
    """Problem and remedy of the InputError that ``make(*arguments)`` raises; None if it raises none."""
    try:
        make(*arguments)
    except InputError as error:
        return f"{error.problem}. {error.remedy.rstrip('.')}"
    return None


def listed(names: Sequence[str], most: int = 40) -> str:
    """Names for an error message: at most ``most`` of them, and the number of the others."""
    beyond = len(names) - most
    return ", ".join(names[:most]) + (f", … and {beyond} more" if beyond > 0 else "")


def tell(error: Exception, before: str = "") -> None:
    """Write an error to the log, ``before`` it what it is about. An exception in a user's own code comes with its
    traceback, the line that says it all last."""
    if isinstance(error, UserCodeError):
        traceback.print_exception(error.__cause__)
    print(f"{before}{error}", file=sys.stderr, flush=True)


def run(main: Callable[[], None]) -> None:
    """Run ``main``; bad input and failed writes end it as :func:`in_one_line` says."""
    with in_one_line():
        main()


@contextlib.contextmanager
def in_one_line() -> Iterator[None]:
    """Let bad input and failed writes in the block end the process with one line instead of a traceback.

    The exit status is 2 for an :class:`InputError`, 1 for an operating-system error such as a full disk, 130 for
    Ctrl-C. Where the reader of its output has gone, as `head` does, it ends without a word.
    """
    try:
        yield
    except InputError as error:
        tell(error, "error: ")
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr, flush=True)
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still to be flushed goes there
        sys.exit(1)
    except OSError as error:
        folder = isinstance(error, IsADirectoryError)
        act = "Name a file, not a folder" if folder else "Free space or correct the permissions"
        remedy = f"{act}, then run the same command again."
        place = error.filename or "file system"
        print(f"error: {place}: {error.strerror or error}. {remedy}", file=sys.stderr, flush=True)
        sys.exit(1)
