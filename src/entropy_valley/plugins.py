"""Plug-ins by name: one of ours, or a user's own as ``module:name``. What calls a user's own says who is to blame.

In params and keys of results, a user's own has a digest of its code behind its name, ``module:name@digest``: after an
edit it is another one.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import operator
import reprlib
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from entropy_valley import files, spelling
from entropy_valley.errors import InputError, UserCodeError

_GUIDE = "docs/extending.md shows what the class needs."


def find(kind: str, known: Mapping[str, Any], name: str) -> Any:
    """What ``name`` says; raises InputError where it is neither known nor importable, or has been edited since."""
    name, _, code = name.partition("@")
    if ":" in name:
        found = _imported(kind, name)
        if code and code != _code(name):
            problem = "its code was edited since the run began"
            raise InputError(f"{kind} {name!r}", problem, "Run the same command again: it plans what the edit changes.")
        return found
    if name not in known:
        remedy = f"{spelling.question(name, known)}Name one of {', '.join(sorted(known))}, or module:name."
        raise InputError(f"{kind} {name!r}", "unknown", remedy)
    return known[name]


def with_code(name: str) -> str:
    """A name for params and keys: that of a user's own with a digest of its module's code."""
    return f"{name}@{_code(name)}" if ":" in name else name


def without_code(name: str) -> str:
    """A name as the config has it."""
    return name.partition("@")[0]


def make(
    kind: str,
    known: Mapping[str, type],
    name: str,
    settings: Mapping[str, Any],
    parts: Mapping[str, int | None] | None = None,
) -> Any:
    """An instance of the class that ``name`` says, built with the settings as keyword arguments.

    ``parts`` are those of its protocol: how many arguments a method is called with, None for an attribute. Raises
    InputError as :func:`find` does, for settings that the class refuses, and for an instance that lacks a part.
    """
    plugin, place = find(kind, known, name), f"{kind} {without_code(name)!r}"
    if not isinstance(plugin, type):
        raise InputError(place, "is no class", "Name a class.")
    try:
        made = plugin(**settings)
        found = {part: getattr(made, part, None) for part in parts or {}}
    except InputError:
        raise
    except ValidationError as error:
        raise InputError(place, _refused(error), _takes(plugin)) from None
    except Exception as error:  # of a user's own code, too: it is to be told before anything runs
        raise UserCodeError(place, _raised(error), _takes(plugin)) from error
    if missing := [part for part, value in found.items() if value is None]:
        raise InputError(place, f"has no {' and no '.join(missing)}", _GUIDE)
    for part, value in found.items():
        if parts[part] is not None and (problem := _cannot_call(value, parts[part])):
            raise InputError(place, f"{part} {problem}", _GUIDE)
    return made


def is_own(plugin: object) -> bool:
    """Whether the class of a plug-in is a user's own."""
    return type(plugin).__module__.partition(".")[0] != __name__.partition(".")[0]


@contextlib.contextmanager
def calling(plugin: object, method: str, about: str) -> Iterator[None]:
    """Whatever a user's own method raises in the block becomes one error that names its file, class and method.

    ``about`` says what it was called for, such as a sentence. An exception in our own code stays as it is.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, InputError) or not is_own(plugin):
            raise
        problem, remedy = f"{about}: {_raised(error)}", "Mend it; the traceback is in the log."
        raise UserCodeError(_method(plugin, method), problem, remedy) from error


def refused(plugin: object, method: str, about: str, problem: str, remedy: str) -> InputError:
    """The error for what a plug-in's method has answered, which names its file, class and method."""
    return InputError(_method(plugin, method), f"{about}: {problem}", remedy)


def shown(value: object) -> str:
    """A value in an error message, cut to a line."""
    return " ".join(reprlib.repr(value).split())


def whole(value: object, least: int | None = None) -> int | None:
    """The integer that a value is, of Python, numpy or torch; None if it is none, or below ``least``."""
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None
    return None if found is None or (least is not None and found < least) else found


def number(value: object) -> int | float | None:
    """The number that a value is, of Python, numpy or torch, unchanged if it is one of Python; None: none, or NaN."""
    if isinstance(value, bool | str | bytes):
        return None
    try:
        found = value if isinstance(value, int | float) else float(value)
    except (TypeError, ValueError, RuntimeError):  # torch: a tensor of several numbers
        return None
    return found if found == found else None


def _code(name: str) -> str:
    """12 hex digits: a digest of the module's code without comments and formatting, or of its file if it is no text."""
    path = Path(importlib.util.find_spec(name.partition(":")[0]).origin)
    return _digest(path, path.stat().st_mtime_ns)


@functools.cache
def _digest(path: Path, changed: int) -> str:
    if path.suffix != ".py":
        return files.file_digest(path)[:12]
    return files.text_digest(ast.dump(ast.parse(path.read_bytes())))[:12]


def _method(plugin: object, name: str) -> str:
    """File, class and method, for an error."""
    module = type(plugin).__module__
    file = getattr(sys.modules.get(module), "__file__", None) or module
    return f"{Path(file).name}, {type(plugin).__qualname__}.{name}"


def _raised(error: BaseException) -> str:
    """An exception in one line, with the last line of a user's file on its way."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({Path(error.filename or '?').name}, line {error.lineno})"
    others = (str(Path(__file__).parent), sys.prefix, sys.base_prefix, "<")
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(others)]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    said = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {said}".removesuffix(": ") + where


def _cannot_call(method: object, arguments: int) -> str | None:
    """Why a method does not take so many arguments; None if it does, or does not say what it takes."""
    if not callable(method):
        return "is no method"
    try:
        inspect.signature(method).bind(*range(arguments))
    except TypeError as error:
        return f"is called with {arguments} argument{'s' * (arguments > 1)}: {error}"
    except ValueError:  # of a builtin
        pass
    return None


def _refused(error: ValidationError) -> str:
    """What is wrong with settings, in one line."""
    problems = []
    for item in error.errors():
        message = "no such setting" if item["type"] == "extra_forbidden" else item["msg"]
        problems.append(": ".join([*map(str, item["loc"]), message.removeprefix("Value error, ")]))
    return "; ".join(problems)


def _takes(plugin: type) -> str:
    names = getattr(plugin, "model_fields", None)
    if names is None:
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        parameters = inspect.signature(plugin.__init__).parameters.values()
        names = [one.name for one in parameters if one.kind in named and one.name != "self"]
    return f"It takes {', '.join(sorted(names)) or 'no settings'}."


def _imported(kind: str, name: str) -> Any:
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:  # a script's path starts at its own folder, not at the user's
        sys.path.append(str(Path.cwd()))
    place, remedy = f"{kind} {name!r}", "Put the module into the working directory, or install it."
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise InputError(place, str(error), remedy) from None
    except (Exception, SystemExit) as error:  # whatever the user's file does
        raise UserCodeError(place, _raised(error), "Mend the module, so that Python can import it.") from error
    if not hasattr(found, attribute):
        classes = [name for name, one in vars(found).items() if inspect.isclass(one) and one.__module__ == module]
        remedy = f"Its classes: {', '.join(classes) or 'none'}."
        raise InputError(place, f"module {module!r} has no attribute {attribute!r}", remedy)
    return getattr(found, attribute)
