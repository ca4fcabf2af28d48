"""What pydantic finds wrong with a config, in the words of the config: the path of a key, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from entropy_valley.experiment import typos
from entropy_valley.experiment.checks import Problem
from entropy_valley.experiment.expansion import KeyPath
from entropy_valley.lengths import LENGTH_METHODS
from entropy_valley.spelling import Unknown, either, nearest, question

MISSING = object()


def problems(errors: Sequence[Any], config: Any) -> list[Problem]:
    """Pydantic's errors, those of one key together: a value of several kinds has one for each kind."""
    missing: dict[KeyPath, list[str]] = {}
    for item in errors:
        if item["type"] == "missing":
            *block, key = _path(item["loc"], config)
            missing.setdefault(tuple(block), []).append(str(key))
    found: dict[KeyPath, dict[str, None]] = {}
    for item in errors:
        path, message = _problem(item, config, missing)
        found.setdefault(path, {})[message] = None
    return [(path, next(iter(said)) if len(said) == 1 else _any(said)) for path, said in found.items()]


def _any(messages: Iterable[str]) -> str:
    """That one of several things is right."""
    first, *others = messages
    return ", or ".join([first, *(message.removeprefix("must be ") for message in others)])


def _problem(item: Any, config: Any, missing: Mapping[KeyPath, list[str]]) -> Problem:
    """Where and what, of one error; ``missing`` are the keys that each block needs and has not."""
    path = _path(item["loc"], config)
    block = value(path[:-1], config)
    if item["type"] == "missing" and isinstance(block, Mapping) and (near := nearest(item["loc"][-1], block)):
        return path, f"it is required. Is {near[0]} this key, mistyped?"
    if item["type"] != "extra_forbidden":
        return path, _message(item)
    if near := nearest(path[-1], typos.keys(path[:-1], config)):
        return path, Unknown(f"unknown key; did you mean {either(near)}?", path[-1], near)
    if len(lacking := missing.get(path[:-1], [])) == 1:
        return path, Unknown(f"unknown key; is it {lacking[0]}, which is missing?", path[-1], lacking)
    return path, Unknown("unknown key; remove it or mend its spelling", path[-1], [])


def _message(item: Any) -> str:
    if item["type"] == "string_pattern_mismatch" and "{" in str(item["input"]) and "methods" in item["loc"]:
        return "is no block of `length_methods` that lists values under `each`"
    if item["type"] == "union_tag_not_found":
        return f"needs the key {item['ctx']['discriminator']}"
    if item["type"] == "string_pattern_mismatch" and item["loc"][-1] == "[key]":
        return "its name must be in lower case, with hyphens, like en-zh or my-llada"
    said, context = _plain(item["msg"]), item.get("ctx", {})
    if item["type"] == "union_tag_invalid":
        said = f"{context['discriminator']} is none of {context['expected_tags']}"
    choices = re.findall("'([^']+)'", str(context.get("expected_tags", context.get("expected", ""))))
    guess = question(context.get("tag", item["input"]), choices)
    if item["type"] == "missing" and item["loc"][-1] == "selector":
        guess = question(item["loc"][1], LENGTH_METHODS)  # the name of the block, which is none of ours
    return f"{said}. {guess.rstrip()}" if guess else said


def _plain(text: str) -> str:
    """A message of pydantic without its words for Python's objects."""
    text = re.sub("^[A-Z][a-z]+ should ", "must ", text.removeprefix("Value error, "))
    text = re.sub(", unable to parse .*| after validation.*|, got a number.*", "", text)
    return re.sub("a valid (dictionary|mapping).*", "a block of keys", text).replace("Field required", "it is required")


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
