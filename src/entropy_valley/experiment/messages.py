"""What pydantic finds wrong with a config, in the words of the config: the path of a key, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from entropy_valley.canvas.length_methods import LENGTH_METHODS
from entropy_valley.experiment import typos
from entropy_valley.experiment.checks import Problem
from entropy_valley.experiment.expansion import KeyPath
from entropy_valley.spelling import Unknown, either, nearest, question

MISSING = object()


def problem(item: Any, config: Any) -> Problem:
    """Where and what, of one of pydantic's errors."""
    path = _path(item["loc"], config)
    block = value(path[:-1], config)
    if item["type"] == "missing" and isinstance(block, Mapping) and (near := nearest(item["loc"][-1], block)):
        return path, f"Field required. Is {near[0]} this key, mistyped?"
    if item["type"] != "extra_forbidden":
        return path, _message(item)
    near = nearest(path[-1], typos.keys(path[:-1], config))
    remedy = f"did you mean {either(near)}?" if near else "remove it or mend its spelling"
    return path, Unknown(f"unknown key; {remedy}", path[-1], near)


def _message(item: Any) -> str:
    if item["type"] == "string_pattern_mismatch" and "{" in str(item["input"]) and "methods" in item["loc"]:
        return "is no block of `length_methods` that lists values under `each`"
    if item["type"] == "union_tag_not_found":
        return f"needs the key {item['ctx']['discriminator']}"
    if item["type"] == "string_pattern_mismatch" and item["loc"][-1] == "[key]":
        return "its name must be in lower case, with hyphens, like en-zh or my-llada"
    said, context = item["msg"].removeprefix("Value error, "), item.get("ctx", {})
    choices = re.findall("'([^']+)'", str(context.get("expected_tags", context.get("expected", ""))))
    guess = question(context.get("tag", item["input"]), choices)
    if item["type"] == "missing" and item["loc"][-1] == "selector":
        guess = question(item["loc"][1], LENGTH_METHODS)  # the name of the block, which is none of ours
    return f"{said}. {guess.rstrip()}" if guess else said


def _path(location: Sequence[str | int], merged: Any) -> KeyPath:
    """A pydantic location without the tags of unions, which are no keys of the file."""
    path, node = [], merged
    for position, key in enumerate(location):
        known = (isinstance(node, Mapping) and key in node) or (isinstance(node, list) and key in range(len(node)))
        if known:
            node = node[key]
        elif position < len(location) - 1 or key == "[key]" or not isinstance(node, Mapping):
            continue
        path.append(key)
    return tuple(path)


def value(path: KeyPath, node: Any) -> Any:
    """What stands at a path, or MISSING."""
    for key in path:
        there = key in node if isinstance(node, Mapping) else isinstance(node, list) and key in range(len(node))
        if not there:
            return MISSING
        node = node[key]
    return node
