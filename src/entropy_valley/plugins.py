"""Plug-ins by name: one of ours, or a user's own as ``module:name``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from entropy_valley.errors import InputError


def find(kind: str, known: Mapping[str, Any], name: str) -> Any:
    """What ``name`` says; raises InputError where it is neither known nor importable."""
    if ":" in name:
        return _imported(kind, name)
    if name not in known:
        raise InputError(f"{kind} {name!r}", "unknown", f"Name one of {', '.join(sorted(known))}, or module:name.")
    return known[name]


def make(
    kind: str, known: Mapping[str, type], name: str, settings: Mapping[str, Any], parts: Sequence[str] = ()
) -> Any:
    """An instance of the class that ``name`` says, built with the settings as keyword arguments.

    Raises InputError as :func:`find` does, for settings that the class refuses, and for an instance that lacks one of
    the ``parts`` of its protocol.
    """
    plugin, place = find(kind, known, name), f"{kind} {name!r}"
    if not isinstance(plugin, type):
        raise InputError(place, "is no class", "Name a class.")
    try:
        made = plugin(**settings)
    except InputError:
        raise
    except ValidationError as error:
        raise InputError(place, _refused(error), _takes(plugin)) from None
    except Exception as error:  # of a user's own code, too: it is to be told before anything runs
        raise InputError(place, str(error) or repr(error), _takes(plugin)) from error
    missing = [part for part in parts if not hasattr(made, part)]
    if missing:
        raise InputError(place, f"has no {' and no '.join(missing)}", "docs/extending.md shows what the class needs.")
    return made


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
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        remedy = "Put the module into the working directory, or install it."
        raise InputError(f"{kind} {name!r}", str(error), remedy) from None
