"""Plug-ins by name: one of ours, or a user's own as ``module:name``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from entropy_valley.errors import InputError


def find(kind: str, known: Mapping[str, Any], name: str) -> Any:
    """What ``name`` says; raises InputError where it is neither known nor importable."""
    if ":" in name:
        return _imported(kind, name)
    if name not in known:
        raise InputError(f"{kind} {name!r}", "unknown", f"Name one of {', '.join(sorted(known))}, or module:name.")
    return known[name]


def make(kind: str, known: Mapping[str, type], name: str, settings: Mapping[str, Any]) -> Any:
    """An instance of the class that ``name`` says, built with the settings as keyword arguments.

    Raises InputError as :func:`find` does, and for settings the class does not take.
    """
    plugin = find(kind, known, name)
    try:
        inspect.signature(plugin).bind(**settings)
    except TypeError as error:
        raise InputError(f"{kind} {name!r}", str(error), f"It takes {inspect.signature(plugin)}.") from None
    return plugin(**settings)


def _imported(kind: str, name: str) -> Any:
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:  # a script's path starts at its own folder, not at the user's
        sys.path.append(str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        remedy = "Put the module into the working directory, or install it."
        raise InputError(f"{kind} {name!r}", str(error), remedy) from None
