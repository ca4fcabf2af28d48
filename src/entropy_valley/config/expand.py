"""Short forms of the config, written out: variants of backbones, methods made by a list, ratios taken from a method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from entropy_valley.errors import unknown

KeyPath = tuple[str | int, ...]
Problem = tuple[KeyPath, str]  # the path of a key, and what would be right
METHODS = "length_methods"
SHORT_FORMS = {  # keys of a length method's block that stand for others, for the JSON schema
    "each": {
        "description": "one key and the list of its values, {seed: [1, 2]}: a method of each value, named by it",
        "type": "object",
    },
    "same_ratios_as": {"description": "a method whose `ratios` it takes over", "type": "string"},
}


@dataclass(frozen=True)
class Expanded:
    """A config without short forms."""

    config: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)
    written: dict[KeyPath, KeyPath] = field(default_factory=dict)  # key here: key of the files that it was made from

    def as_written(self, path: KeyPath) -> KeyPath:
        """The key of the config files that sets what this key holds."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.written:
                return self.as_written((*self.written[path[:end]], *path[end:]))
        return path


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid on ``base``: mappings are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = overlay(merged[key], value) if both else value
    return merged


def expand(merged: Mapping[str, Any]) -> Expanded:
    """Write out every short form of a merged config. A bad one becomes a problem, and its block is left out."""
    expanded = _with_variants(merged)
    methods = expanded.config.get(METHODS)
    if isinstance(methods, Mapping):
        groups = {name: _made(name, block, expanded) for name, block in methods.items() if _is_template(name, block)}
        blocks = {name: block for group in groups.values() for name, block in group.items()}
        blocks = overlay(blocks, {name: block for name, block in methods.items() if name not in groups})
        expanded.config[METHODS] = _with_shared_ratios(blocks, expanded)
        _name_made_methods(expanded.config, {name: list(group) for name, group in groups.items()})
    return expanded


def _with_variants(merged: Mapping[str, Any]) -> Expanded:
    """Each variant of a backbone laid over the backbone that it is one of."""
    backbones = merged.get("backbones")
    if not isinstance(backbones, Mapping):
        return Expanded(dict(merged))
    expanded = Expanded({**merged, "backbones": {}})
    for name, section in backbones.items():
        base = get(section, "variant_of")
        if not isinstance(base, str):
            expanded.config["backbones"][name] = section
        elif not isinstance(backbones.get(base), Mapping) or base == name:
            others = [one for one in backbones if one != name]
            problem = unknown(base, "is not another backbone", others, "`backbones` has")
            expanded.problems.append((("backbones", name, "variant_of"), problem))
        elif get(backbones[base], "variant_of"):
            problem = "is a variant itself; name the backbone that has the checkpoint"
            expanded.problems.append((("backbones", name, "variant_of"), problem))
        else:
            expanded.config["backbones"][name] = overlay(backbones[base], section)
            taken = _taken(backbones[base], section)
            expanded.written.update({("backbones", name, *key): ("backbones", base, *key) for key in taken})
            for key in ("family", "hub", "folder", "pretraining", "pretrained"):
                if section.get(key, backbones[base].get(key)) != backbones[base].get(key):
                    problem = f"a variant has the checkpoint of {base}; remove this key"
                    expanded.problems.append((("backbones", name, key), problem))
    return expanded


def _taken(base: Mapping[str, Any], over: Mapping[str, Any]) -> Iterator[KeyPath]:
    """The keys that stay as ``base`` has them where ``over`` is laid on it."""
    for key, value in base.items():
        if key not in over:
            yield (key,)
        elif isinstance(value, Mapping) and isinstance(over[key], Mapping):
            yield from ((key, *below) for below in _taken(value, over[key]))


def _is_template(name: Any, block: Any) -> bool:
    return isinstance(block, Mapping) and ("each" in block or "{" in str(name))


def _made(template: str, block: Mapping[str, Any], expanded: Expanded) -> dict[str, dict[str, Any]]:
    """A block for each value that ``each`` lists, under the name that the template gives it."""
    place, each = (METHODS, template, "each"), block.get("each")
    key, values = next(iter(each.items())) if isinstance(each, Mapping) and len(each) == 1 else ("", None)
    if not (isinstance(values, list) and values):
        expanded.problems.append((place, "give one key and the list of its values, like {seed: [1, 2, 3]}"))
        return {}
    shared, blocks = {name: value for name, value in block.items() if name != "each"}, {}
    for index, value in enumerate(values):
        try:
            name = template.format(**{key: value})
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            name = template
        if name == template or name in blocks:
            problem = f"no name of its own for {value!r}; the block's name must hold the value, as {{{key}}}"
            expanded.problems.append(((*place, key), problem))
            return {}
        printed = {one: shared[one].format(**{key: value}) for one in ("label", "short") if one in shared}
        blocks[name] = shared | printed | {key: value}
        expanded.written[(METHODS, name)] = (METHODS, template)
        expanded.written[(METHODS, name, key)] = (*place, key, index)
    return blocks


def _with_shared_ratios(blocks: Mapping[str, Any], expanded: Expanded) -> dict[str, Any]:
    """``same_ratios_as`` replaced by that method's ratios, under those that the block itself has."""
    whole = {}
    for name, block in blocks.items():
        other = get(block, "same_ratios_as")
        ratios = get(blocks.get(other), "ratios") if isinstance(other, str) else None
        if not other:
            whole[name] = block
        elif ratios is None:
            named = [one for one, block in blocks.items() if get(block, "ratios") is not None]
            problem = unknown(other, "names no method that sets `ratios` itself", named, "`length_methods` has")
            expanded.problems.append(((METHODS, name, "same_ratios_as"), problem))
        else:
            own = {key: value for key, value in block.items() if key != "same_ratios_as"}
            whole[name] = overlay({"ratios": ratios}, own)
            source, taken = (METHODS, other, "ratios"), (METHODS, name, "ratios")
            if "ratios" not in own:
                expanded.written[taken] = source
            elif isinstance(ratios, Mapping) and isinstance(own["ratios"], Mapping):
                keys = [key for key in ratios if key not in own["ratios"]]
                expanded.written.update({(*taken, key): (*source, key) for key in keys})
    return whole


def _name_made_methods(config: dict[str, Any], groups: Mapping[str, list[str]]) -> None:
    """In lists of methods, the name of a block with ``each`` replaced by the names of the methods that it makes."""

    def names(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: names(one) for key, one in value.items()}
        if not isinstance(value, list):
            return value
        return [one for name in value for one in (groups.get(name, [name]) if isinstance(name, str) else [name])]

    def section(value: Any) -> Any:
        return {**value, "methods": names(value["methods"])} if get(value, "methods") else value

    config["matrix"] = section(config.get("matrix"))
    if isinstance(config.get("studies"), Mapping):
        config["studies"] = {name: section(study) for name, study in config["studies"].items()}


def get(block: Any, key: str) -> Any:
    """What a block has under a key; None if it has none, or is no block."""
    return block.get(key) if isinstance(block, Mapping) else None
