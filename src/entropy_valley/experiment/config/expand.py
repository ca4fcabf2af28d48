"""Short forms of the config, written out: variants of backbones, and ratios that are those of another length method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entropy_valley.errors import unknown

KeyPath = tuple[str | int, ...]
Problem = tuple[KeyPath, str]  # the path of a key, and what would be right
MISSING = object()
OF_CHECKPOINT = ("family", "hub", "folder", "pretraining", "pretrained")


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid on ``base``: mappings are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = overlay(merged[key], value) if both else value
    return merged


def at(path: KeyPath, node: Any) -> Any:
    """What stands at a path, or MISSING."""
    try:
        for key in path:
            node = node[key]
    except (KeyError, IndexError, TypeError):
        return MISSING
    return node


def expand(merged: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """A merged config with every short form written out. A bad one becomes a problem, and its block is left out."""
    config, problems = dict(merged), list[Problem]()
    if isinstance(backbones := merged.get("backbones"), Mapping):
        config["backbones"] = _with_variants(backbones, problems)
    if isinstance(methods := merged.get("length_methods"), Mapping):
        config["length_methods"] = _with_shared_ratios(methods, problems)
    return config, problems


def as_written(path: KeyPath, merged: Mapping[str, Any]) -> KeyPath:
    """The key of the config files that sets what a key of the expanded config holds."""
    if len(path) < 2 or at(path, merged) is not MISSING:
        return path
    section, name, *rest = path
    for key in ("variant_of", "same_ratios_as"):
        taken = (section, at((section, name, key), merged), *rest)
        if at(taken, merged) is not MISSING:
            return taken
    return path


def _with_variants(backbones: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Each variant of a backbone laid over the backbone that it is one of."""
    whole = {}
    for name, section in backbones.items():
        base = at(("variant_of",), section)
        if not isinstance(base, str):
            whole[name] = section
        elif not isinstance(backbones.get(base), Mapping) or "variant_of" in backbones[base]:
            own = [other for other, block in backbones.items() if at(("variant_of",), block) is MISSING]
            problem = unknown(base, "is not another backbone with a checkpoint", own, "`backbones` has")
            problems.append((("backbones", name, "variant_of"), problem))
        else:
            whole[name] = overlay(backbones[base], section)
            for key in OF_CHECKPOINT:
                if whole[name].get(key) != backbones[base].get(key):
                    problem = f"a variant has the checkpoint of {base}; remove this key"
                    problems.append((("backbones", name, key), problem))
    return whole


def _with_shared_ratios(methods: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """``same_ratios_as`` replaced by that method's ratios, under those that the block itself has."""
    having = {name: block["ratios"] for name, block in methods.items() if at(("ratios",), block) is not MISSING}
    whole = {}
    for name, block in methods.items():
        other = at(("same_ratios_as",), block)
        if other is MISSING:
            whole[name] = block
        elif isinstance(other, str) and other in having:
            whole[name] = overlay({"ratios": having[other]}, block)
            del whole[name]["same_ratios_as"]
        else:
            problem = unknown(other, "names no method that sets `ratios` itself", having, "`length_methods` has")
            problems.append((("length_methods", name, "same_ratios_as"), problem))
    return whole
