"""Plug-ins by name: one of ours, or a user's own as ``module:name``.

A user's own class is imported and instantiated; its traceback is its error message, with one line that says whose class
it is. In params and keys of results, it has a digest of its code behind its name, ``module:name@digest``: after an edit
it is another one.
"""

import ast
import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from entropy_valley import errors, files
from entropy_valley.errors import InputError, UserCodeError
from entropy_valley.settings import JsonObject, refused_values

GUIDE = "docs/extending.md shows what the class needs."
_ours_alone = ContextVar("ours_alone", default=False)


def find(kind: str, ours: Mapping[str, Any], name: str) -> Any:
    """What ``name`` says: one of ``ours``, or what a user's module has. Raises InputError where there is neither, and
    for a module that has been edited since."""
    if not isinstance(name, str):  # as an object or a class of the user's own
        own = name if isinstance(name, type) else type(name)
        remedy = f'Give "{own.__module__}:{own.__qualname__}", and its settings apart.'
        raise InputError(kind, f"{errors.brief(name, 60)} is not a name", remedy)
    name, _, code = name.partition("@")
    if ":" in name:
        plugin = _imported(kind, name)
        if code and code != _code(name):
            problem = "its code was edited since the run began"
            raise InputError(f"{kind} {name!r}", problem, "Run the same command again: it plans what the edit changes.")
        return plugin
    if name not in ours:
        remedy = f"{errors.question(name, ours)}Name one of {', '.join(sorted(ours))}, or module:name."
        raise InputError(f"{kind} {name!r}", "unknown", remedy)
    return ours[name]


@contextlib.contextmanager
def ours_alone() -> Iterator[None]:
    """In the block a name of a user's own class is an InputError: names from strangers shall execute nothing."""
    token = _ours_alone.set(True)
    try:
        yield
    finally:
        _ours_alone.reset(token)


def with_code(name: str) -> str:
    """A name for params and keys: that of a user's own with a digest of its module's code."""
    return f"{name}@{_code(name)}" if ":" in name else name


def without_code(name: str) -> str:
    """A name as the config has it."""
    return name.partition("@")[0]


def make(kind: str, ours: Mapping[str, type], name: str, settings: JsonObject, parts: Sequence[str] = ()) -> Any:
    """An instance of the class that ``name`` says, built with the settings as keyword arguments.

    ``parts`` are the methods and attributes of its protocol. Raises InputError as :func:`find` does, for settings that
    the class refuses, and for an instance that lacks a part.
    """
    plugin, place = find(kind, ours, name), f"{kind} {without_code(name)!r}"
    if not isinstance(plugin, type):
        raise InputError(place, "is not a class", "Name a class.")
    try:
        instance = plugin(**settings)
    except InputError:
        raise
    except ValidationError as error:
        remedy = GUIDE if is_own(plugin) else "`entropy-valley schema` prints every key."
        raise InputError(place, "; ".join(refused_values(error)), remedy) from None
    except Exception as error:
        raise UserCodeError(place, f"{type(error).__name__}: {error}", GUIDE) from error
    if missing := [part for part in parts if not hasattr(instance, part)]:
        raise InputError(place, f"has no {' and no '.join(missing)}", GUIDE)
    return instance


def is_own(plugin: object) -> bool:
    """Whether a plug-in, an instance or its class, is a user's own."""
    kind = plugin if isinstance(plugin, type) else type(plugin)
    return kind.__module__.partition(".")[0] != __name__.partition(".")[0]


@contextlib.contextmanager
def calling(plugin: object, method: str, about: str) -> Iterator[None]:
    """Add one line to whatever a user's own method raises in the block: its file, class and method, and ``about``, what
    it was called for. The traceback stays. An exception in our own code stays as it is."""
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError) or not is_own(plugin):
            raise
        problem = f"{about}: {type(error).__name__}: {error}"
        raise UserCodeError(_method(plugin, method), problem, "Its traceback is printed before this line.") from error


def refused(plugin: object, method: str, about: str, problem: str, remedy: str) -> InputError:
    """The error for what a plug-in's method returned, which names its file, class and method."""
    return InputError(_method(plugin, method), f"{about}: {problem}", remedy)


def _method(plugin: object, name: str) -> str:
    """File, class and method, for an error: the module where it has no file, as one of C or a folder."""
    kind = type(plugin)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or kind.__module__
    return f"{Path(file).name}, {kind.__qualname__}.{name}"


def _code(name: str) -> str:
    """12 hex digits: a digest of the module's code without comments and formatting, or of a file that is not Python."""
    spec = importlib.util.find_spec(name.partition(":")[0])
    if spec is None or spec.origin is None:
        raise InputError(name, "its module is no file", "Put the class into a file, NAME.py.")
    return _digest(spec.origin)


@files.read_once(None)
def _digest(path: Path) -> str:
    if path.suffix != ".py":
        return files.file_digest(path)[:12]
    return files.text_digest(ast.dump(ast.parse(path.read_bytes())))[:12]


def _imported(kind: str, name: str) -> Any:
    module, _, attribute = name.partition(":")
    place = f"{kind} {name!r}"
    if _ours_alone.get():
        raise InputError(
            place, "is not of this package, and is not imported", "Allow it by --own-classes if you trust its origin."
        )
    if str(Path.cwd()) not in sys.path:  # a script's path starts at its own folder, not at the user's
        sys.path.append(str(Path.cwd()))
    try:
        imported = importlib.import_module(module)
    except Exception as error:  # whatever the user's file does
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            hint = f"Write {module.removesuffix('.py')}:{attribute}. " if module.endswith(".py") else ""
            remedy = f"{hint}Put the module into the working directory, or install it."
            raise InputError(place, str(error), remedy) from None
        problem = f"{_line(error, module)}{type(error).__name__}: {error}"
        raise UserCodeError(place, problem, "Correct the module, so that Python can import it.") from error
    if not hasattr(imported, attribute):
        classes = [name for name, value in vars(imported).items() if isinstance(value, type)]
        remedy = f"{errors.question(attribute, classes)}Name a class of this file, or give yours another name."
        raise InputError(place, f"{getattr(imported, '__file__', None) or module} has no {attribute!r}", remedy)
    return getattr(imported, attribute)


def _line(error: Exception, module: str) -> str:
    """Where a module that is imported raised an exception, be it by a call of a library; "" if it was not run."""
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == module:
            line = f"{Path(frame.f_code.co_filename).name}, line {number}: "
    return line
