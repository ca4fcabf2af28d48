"""Short forms of the config, written out: variants of backbones, methods made by a list, ratios taken from a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entropy_valley.errors import unknown

KeyPath = tuple[str | int, ...]
Problem = tuple[KeyPath, str]  # the path of a key, and what would be right
MISSING = object()
METHODS = "length_methods"
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
    if isinstance(methods := merged.get(METHODS), Mapping):
        groups = {name: _made(name, block, problems) for name, block in methods.items() if _is_list(name, block)}
        written: dict[str, Any] = {}
        for name, block in methods.items():
            written = overlay(written, groups.get(name, {name: block}))
        config[METHODS] = _with_shared_ratios(written, problems)
        config["matrix"] = _naming(merged.get("matrix"), groups)
        if isinstance(studies := merged.get("studies"), Mapping):
            config["studies"] = {name: _naming(study, groups) for name, study in studies.items()}
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
    for template, block in merged[METHODS].items() if section == METHODS else ():
        made = _made(template, block, []) if _is_list(template, block) else {}
        if name in made:
            key = next(iter(block["each"]))
            return (METHODS, template, *(["each", key, [*made].index(name)] if rest[:1] == [key] else rest))
    return path


def _with_variants(backbones: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Each variant of a backbone laid over the backbone that it is one of."""
    whole = {}
    for name, section in backbones.items():
        base, problem = at(("variant_of",), section), ""
        if not isinstance(base, str):
            whole[name] = section
        elif not isinstance(backbones.get(base), Mapping):
            problem = unknown(base, "is not another backbone", backbones, "`backbones` has")
        elif "variant_of" in backbones[base]:
            problem = "is a variant itself; name the backbone that has the checkpoint"
        else:
            whole[name] = overlay(backbones[base], section)
            for key in OF_CHECKPOINT:
                if whole[name].get(key) != backbones[base].get(key):
                    problems.append(
                        (("backbones", name, key), f"a variant has the checkpoint of {base}; remove this key")
                    )
        if problem:
            problems.append((("backbones", name, "variant_of"), problem))
    return whole


def _is_list(name: Any, block: Any) -> bool:
    return isinstance(block, Mapping) and ("each" in block or "{" in str(name))


def _made(template: str, block: Mapping[str, Any], problems: list[Problem]) -> dict[str, dict[str, Any]]:
    """A block for each value that ``each`` lists, under the name that the template gives it."""
    place: KeyPath = (METHODS, template, "each")
    each = block.get("each")
    key, values = next(iter(each.items())) if isinstance(each, Mapping) and len(each) == 1 else ("", None)
    if not (isinstance(values, list) and values):
        problems.append((place, "give one key and the list of its values, like {seed: [1, 2, 3]}"))
        return {}
    blocks: dict[str, dict[str, Any]] = {}
    for value in values:
        try:
            name = template.format(**{key: value})
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            name = template
        if name == template or name in blocks:
            problem = f"no name of its own for {value!r}; the block's name must hold the value, as {{{key}}}"
            problems.append(((*place, key), problem))
            return {}
        blocks[name] = {**block, key: value}
        del blocks[name]["each"]
        for printed in ("label", "short"):
            if isinstance(block.get(printed), str):
                blocks[name][printed] = block[printed].replace(f"{{{key}}}", str(value))
    return blocks


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
            problems.append(((METHODS, name, "same_ratios_as"), problem))
    return whole


def _naming(section: Any, groups: Mapping[str, Mapping[str, Any]]) -> Any:
    """A section in whose `methods` the block of a list stands for the methods that it makes."""
    methods = at(("methods",), section)
    return section if methods is MISSING else {**section, "methods": _named(methods, groups)}


def _named(methods: Any, groups: Mapping[str, Mapping[str, Any]]) -> Any:
    """A list of methods, perhaps by direction."""
    if isinstance(methods, Mapping):
        return {direction: _named(names, groups) for direction, names in methods.items()}
    if not isinstance(methods, list):
        return methods
    named: list[Any] = []
    for name in methods:
        named += groups.get(name, [name]) if isinstance(name, str) else [name]
    return named
