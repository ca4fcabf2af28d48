"""In which keys two configs, or the params of two jobs, differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from entropy_valley import files

LONGEST = 60  # characters of a value in print
KEPT = 12  # of them, before the first that differs


class Absent:
    """The value of a key that one side does not have."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


class Difference(NamedTuple):
    """A key by its path, such as ``length_methods.ev.ratios``, and its value on either side, or ABSENT."""

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.key}: {between(_shown(self.before), _shown(self.after), LONGEST)}"


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Every difference of two values as JSON has them; lists are compared whole. The key of the whole is ""."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            deeper = f"{path}.{key}".lstrip(".")
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), deeper)
    elif before != after:
        yield Difference(path, before, after)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, Absent) else files.canonical(value)


def between(before: str, after: str, longest: int) -> str:
    """``before → after``. Where one of the two has more than ``longest`` characters, both begin where they differ."""
    start = 0
    if max(len(before), len(after)) > longest:
        pairs = enumerate(zip(before, after, strict=False))
        start = max(0, next((at for at, (one, other) in pairs if one != other), 0) - KEPT)
    return " → ".join(_cut(text, start, longest) for text in (before, after))


def _cut(text: str, start: int, longest: int) -> str:
    rest = text[start:]
    return "…" * (start > 0) + (rest if len(rest) <= longest else f"{rest[:longest]}…")
