"""Mistyped keys and names of a config: which keys a block may have, and the config as it would be without mistakes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from entropy_valley.experiment.checks import Problem
from entropy_valley.experiment.expansion import KeyPath, get, overlay
from entropy_valley.experiment.schema import Experiment
from entropy_valley.spelling import Unknown

Schema = Mapping[str, Any]


def keys(path: KeyPath, config: Any) -> list[str]:
    """The keys that the block at a path of the config may have."""
    whole, block = _schema(), config
    schemas = list(_alternatives(whole, whole["$defs"], block))
    for key in path:
        block = block[key]
        below = [one for schema in schemas for one in _below(schema, key)]
        schemas = [one for schema in below for one in _alternatives(schema, whole["$defs"], block)]
    return [key for schema in schemas for key in schema.get("properties", {})]


@functools.cache
def _schema() -> Schema:
    return Experiment.model_json_schema()


def _below(schema: Schema, key: str | int) -> Iterator[Schema]:
    """The schemas of the values under a key."""
    if key in (named := schema.get("properties", {})):
        yield named[key]
        return
    yield from schema.get("patternProperties", {}).values()
    yield from (one for name in ("additionalProperties", "items") if isinstance(one := schema.get(name), Mapping))


def _alternatives(schema: Schema, known: Schema, block: Any) -> Iterator[Schema]:
    """The plain schemas that a value may have: of several kinds of blocks the one that the block says it is."""
    if "$ref" in schema:
        schema = known[schema["$ref"].rpartition("/")[2]]
    several = [one for name in ("anyOf", "oneOf") for one in schema.get(name, ())]
    if not several:
        yield schema
    plain = [one for alternative in several for one in _alternatives(alternative, known, block)]
    said = [one for one in plain if any(get(block, key) == value for key, value in _kind(one).items())]
    yield from said or [one for one in plain if one.get("type") == "object" and not _kind(one)] or plain


def _kind(schema: Schema) -> dict[str, Any]:
    """The values that only this kind of block has."""
    kinds = {key: [one, *one.get("anyOf", ())] for key, one in schema.get("properties", {}).items()}
    return {key: one["const"] for key, some in kinds.items() for one in some if "const" in one}


def mended(config: Mapping[str, Any], problems: Iterable[Problem]) -> dict[str, Any]:
    """The config with each unknown key or name replaced by the one that is probably meant."""
    found = dict(config)
    for path, message in problems:
        if isinstance(message, Unknown) and message.meant and path:
            found = _replaced(found, path, message)
    return found


def _replaced(node: Any, path: KeyPath, typo: Unknown) -> Any:
    """A part of the config with the name at the path replaced: a key, a value, or one of a list of values."""
    key, *rest = path
    if not (isinstance(node, Mapping) and key in node):
        return node
    others = {name: value for name, value in node.items() if name != key}
    if rest:
        return {**node, key: _replaced(node[key], tuple(rest), typo)}
    if key == typo.name:
        return overlay(others, {typo.meant: node[key]})
    values = node[key]
    names = [typo.meant if name == typo.name else name for name in (values if isinstance(values, list) else [values])]
    return {**node, key: names if isinstance(values, list) else names[0]}
