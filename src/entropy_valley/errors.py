"""The exception for bad input, and how a script ends on it."""

import contextlib
import difflib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


class InputError(Exception):
    """The user's input is wrong. The message has the place, the problem and the remedy."""

    def __init__(self, place: object, problem: str, remedy: str) -> None:
        self.place, self.problem, self.remedy = str(place), problem, remedy
        super().__init__(self.place, problem, remedy)  # by which it can be copied, and sent by another process

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}{'' if self.problem.endswith('?') else '.'} {self.remedy}"


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


def brief(value: object, most: int = 200) -> str:
    """A value for an error message: on one line, of at most ``most`` characters. A text that can be printed is as it
    is, any other value as Python writes it."""
    text = value if isinstance(value, str) and value.isprintable() else repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def listed(names: Sequence[str], most: int = 40) -> str:
    """Names for an error message: at most ``most`` of them, each :func:`brief`, and the number of the others."""
    beyond = len(names) - most
    return ", ".join(map(brief, names[:most])) + (f", … and {beyond} more" if beyond > 0 else "")


def note(line: str) -> None:
    """Write a line to the log, at once: it stands before what other processes write later."""
    print(line, file=sys.stderr, flush=True)


def tell(error: Exception, before: str = "") -> None:
    """Write an error to the log, ``before`` it what it is about. An exception in a user's own code comes with its
    traceback, the line that says it all last."""
    if isinstance(error, UserCodeError):
        traceback.print_exception(error.__cause__)
    note(f"{before}{error}")


_REMEDIES: Mapping[type, str] = {
    IsADirectoryError: "Name a file, not a folder",
    FileExistsError: "Name another folder: a file is in its place",
    FileNotFoundError: "Check the path",
    NotADirectoryError: "Check the path",
}


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
        note("stopped by Ctrl-C")
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still to be flushed goes there
        sys.exit(1)
    except OSError as error:
        act = _REMEDIES.get(type(error), "Free space or correct the permissions")
        problem = f"{error.filename or 'file system'}: {error.strerror or error}"
        note(f"error: {problem}. {act}, then run the same command again.")
        sys.exit(1)


# --- Names that nothing has, and which of the names that there are they may mean.

FEW = 8  # of no more names than these, a message lists all


def nearest(name: object, names: Iterable[object]) -> list[str]:
    """At most three of the names that are much like ``name``, the likeliest first."""
    return difflib.get_close_matches(str(name), list(dict.fromkeys(map(str, names))))


def question(name: object, names: Iterable[object]) -> str:
    """The names that may be meant, as the beginning of a remedy; empty if there are none."""
    near = nearest(name, names)
    return f"Did you mean {' or '.join(near)}? " if near else ""


def unknown(name: object, problem: str, names: Iterable[object], holder: str = "there is") -> str:
    """``problem``, the names that may be meant, and which there are: of more than :data:`FEW` only the first ones.
    ``holder`` says where they are, as "`sources` has"."""
    distinct = list(dict.fromkeys(map(str, names)))
    hint = question(name, distinct)
    return f"{problem}; {hint[:1].lower()}{hint[1:]}{holder} {listed(distinct, FEW) or 'none'}"
