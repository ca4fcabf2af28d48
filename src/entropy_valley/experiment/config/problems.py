"""Problems of a config as one error: a line for each, with file, key, value, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from entropy_valley.errors import InputError, brief, question
from entropy_valley.experiment.config.expand import MISSING, KeyPath, Problem, as_written, at
from entropy_valley.settings import words_of
from entropy_valley.texts import counted

ELSEWHERE = "Where another config file has a backbone, name this file, as `extends: config/demo.yaml`. "


def of_values(error: ValidationError, config: Mapping[str, Any]) -> list[Problem]:
    """Pydantic's errors, those of one key together: a value of several kinds has one for each kind."""
    messages: dict[KeyPath, list[str]] = {}
    for item in error.errors():
        location, message, context = item["loc"], words_of(item), item.get("ctx", {})
        if item["type"].startswith("union_tag_"):  # of the key that tells blocks apart
            location = (*location, context["discriminator"].strip("'"))
        if location[-1] == "[key]":
            message = f"its name {message}"
        choices = re.findall("'([^']+)'", str(context.get("expected_tags", context.get("expected", ""))))
        if len(choices) > 2 and (hint := question(context.get("tag", item["input"]), choices)):
            message = f"{message}. {hint.rstrip()}"
        missing = item["type"] in ("missing", "union_tag_not_found")
        some = messages.setdefault(_key_path(location, config, missing), [])
        if message not in some:
            some.append(message)
    return [(path, ", or ".join(some)) for path, some in messages.items()]


def _key_path(location: Sequence[str | int], config: Mapping[str, Any], missing: bool) -> KeyPath:
    """The place of one of pydantic's errors without the names of types, which are no keys of the file."""
    path: KeyPath = ()
    for key in location[:-1] if missing else location:
        if at((*path, key), config) is not MISSING:
            path = (*path, key)
    return (*path, location[-1]) if missing else path


def refused(
    problems: Sequence[Problem], expanded: Mapping[str, Any], merged: Mapping[str, Any], files: dict[str, Any]
) -> InputError:
    """The error that lists every problem of an expanded config, ``merged`` from ``files``."""
    lines: dict[str, None] = {}
    for path, message in problems:
        written = as_written(path, merged)
        value = at(path, expanded)
        if value is MISSING:
            value = at(written, merged)
        shown = " is missing"
        if value is not MISSING:
            shown = "" if isinstance(value, Mapping) else f" = {brief(repr(value), 100)}"
        lines[f"\n  {_file(written, files)}{'.'.join(map(str, written))}{shown}: {message}"] = None
    backbones = any(path[-1] in ("backbones", "family") for path, _ in problems)  # that this config does not have
    remedy = f"\n{ELSEWHERE * backbones}`entropy-valley schema` prints every key."
    return InputError("config", f"{counted(len(lines), 'problem')}:{''.join(lines)}", remedy)


def _file(path: KeyPath, files: dict[str, Any]) -> str:
    """The last file that sets the longest part of a key's path."""
    for end in range(len(path), 0, -1):
        for name, content in reversed(files.items()):
            if at(path[:end], content) is not MISSING:
                return f"{name}: "
    return f"{[*files][-1]}: " if files else ""
