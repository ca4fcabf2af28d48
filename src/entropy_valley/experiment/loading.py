"""From the merged mapping that Snakemake hands over to a checked :class:`Experiment`, with all errors at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from entropy_valley.errors import InputError
from entropy_valley.experiment.checks import cross_problems
from entropy_valley.experiment.feasibility import infeasible
from entropy_valley.experiment.schema import Experiment


def load_files(paths: Iterable[str | Path]) -> Experiment:
    """Read config files, each laid over those before it as Snakemake does, and check the result."""
    merged: dict[str, Any] = {}
    paths = list(paths)
    for path in paths:
        merged = overlay(merged, read_yaml(path))
    return load(merged, paths)


def read_yaml(path: str | Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(path, "file not found", "Check the path given to --configfile.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(path, f"not YAML ({error})", "Mend the line it names.") from None
    if not isinstance(content, dict):
        raise InputError(path, "holds no mapping", "Start from config.yaml.")
    return content


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid on ``base``: mappings are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = overlay(merged[key], value) if both else value
    return merged


def with_variants(merged: Mapping[str, Any]) -> dict[str, Any]:
    """The config with each variant of a backbone laid over the backbone that it is one of."""
    backbones = merged.get("backbones")
    if not isinstance(backbones, Mapping):
        return dict(merged)
    whole = {}
    for name, section in backbones.items():
        named = section.get("variant_of") if isinstance(section, Mapping) else None
        base = backbones.get(named) if isinstance(named, str) else None
        whole[name] = overlay(base, section) if isinstance(base, Mapping) else section
    return {**merged, "backbones": whole}


def load(merged: Mapping[str, Any], paths: Sequence[str | Path] = ()) -> Experiment:
    """Check a merged config.

    Raises one InputError that lists every problem: the file that sets the key, the key's path, its value, and what
    would be right.
    """
    merged, problems = with_variants(merged), []
    experiment = None
    try:
        experiment = Experiment.model_validate(merged)
    except ValidationError as error:
        problems = [(_path(item["loc"], merged), _message(item)) for item in error.errors()]
    problems += cross_problems(merged)
    if experiment is not None and not problems:
        problems = infeasible(experiment)
    if problems or experiment is None:
        lines = "".join(f"\n  {_place(path, merged, paths)}: {message}" for path, message in problems)
        raise InputError(
            "config",
            f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:{lines}",
            "\ndocs/config.schema.json lists every key",
        )
    return experiment


def _message(item: Any) -> str:
    if item["type"] == "extra_forbidden":
        return "unknown key; remove it or mend its spelling"
    if item["type"] == "string_pattern_mismatch" and item["loc"][-1] == "[key]":
        return "its name must be in lower case, with hyphens, like en-zh or my-llada"
    return item["msg"].removeprefix("Value error, ")


def _path(location: Sequence[str | int], merged: Any) -> tuple[str | int, ...]:
    """A pydantic location without the tags of unions, which are no keys of the file."""
    path, node = [], merged
    for position, key in enumerate(location):
        known = (isinstance(node, Mapping) and key in node) or (isinstance(node, list) and isinstance(key, int))
        if known:
            node = node[key]
        elif position < len(location) - 1 or key == "[key]" or not isinstance(node, Mapping | list):
            continue
        path.append(key)
    return tuple(path)


def _place(path: Sequence[str | int], merged: Any, files: Sequence[str | Path]) -> str:
    node, found = merged, True
    for key in path:
        found = key in node if isinstance(node, Mapping) else isinstance(node, list) and key in range(len(node))
        node = node[key] if found else None
        if not found:
            break
    value = f" = {node!r}" if found and not isinstance(node, Mapping) else "" if found else " is missing"
    return f"{_origin(path, files)}{'.'.join(map(str, path))}{value}"


def _origin(path: Sequence[str | int], files: Sequence[str | Path]) -> str:
    """The last file that sets the longest part of a key's path."""
    best, depth = "", -1
    for file in files:
        node, reached = read_yaml(file), 0
        for key in path:
            if not (isinstance(node, Mapping) and key in node):
                break
            node, reached = node[key], reached + 1
        if reached >= depth:
            best, depth = f"{file}: ", reached
    return best
