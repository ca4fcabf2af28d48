"""From the merged mapping that Snakemake hands over to a checked :class:`Experiment`, with all errors at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from entropy_valley.config.schema import Experiment
from entropy_valley.errors import InputError

Problem = tuple[tuple[str | int, ...], str]


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


def load(merged: Mapping[str, Any], paths: Sequence[str | Path] = ()) -> Experiment:
    """Check a merged config.

    Raises one InputError that lists every problem: the file that sets the key, the key's path, its value, and what
    would be right.
    """
    problems: list[Problem] = []
    experiment = None
    try:
        experiment = Experiment.model_validate(merged)
    except ValidationError as error:
        problems = [(_path(item["loc"], merged), _message(item)) for item in error.errors()]
    problems += cross_problems(merged)
    if experiment is not None and not problems:
        problems += _unusable_methods(experiment)
    if problems or experiment is None:
        lines = "".join(f"\n  {_place(path, merged, paths)}: {message}" for path, message in problems)
        raise InputError(
            "config",
            f"{len(problems)} problem{'s' if len(problems) > 1 else ''}:{lines}",
            "\ndocs/config.schema.json lists every key",
        )
    return experiment


def _unusable_methods(experiment: Experiment) -> Iterator[Problem]:
    """Selectors that cannot be made: their jobs would only say so after hours of training."""
    from entropy_valley.canvas.selectors import make_selector
    from entropy_valley.specs import selector_settings

    for method in experiment.matrix.methods:
        for direction in experiment.matrix.directions:
            try:
                make_selector(method, selector_settings(experiment, method, direction))
            except InputError as error:
                yield ("length_methods", method), f"for {direction}: {error.problem}. {error.remedy.rstrip('.')}"


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
        elif position < len(location) - 1 or key == "[key]":
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


def cross_problems(merged: Mapping[str, Any]) -> list[Problem]:
    """What no single key can know: names that nothing defines, directions without ratios."""
    return [
        *_undefined(merged),
        *_undefined_sources(merged),
        *_without_ratios(merged),
        *_unknown_orders(merged),
        *_without_compared_methods(merged),
        *_outside_the_matrix(merged),
        *_without_filters(merged),
    ]


def _undefined(merged: Mapping[str, Any]) -> Iterator[Problem]:
    for key, section in (("backbones", "backbones"), ("directions", "directions"), ("methods", "length_methods")):
        defined = [name for name, value in _section(merged, section).items() if value is not None]
        for name in _list(_section(merged, "matrix").get(key)):
            if name not in defined:
                yield ("matrix", key), f"{name!r} is not defined; `{section}` has {', '.join(map(str, defined))}"


def _undefined_sources(merged: Mapping[str, Any]) -> Iterator[Problem]:
    defined = _section(merged, "sources")
    for direction, section in _section(merged, "directions").items():
        named = section if isinstance(section, Mapping) else {}
        for key, names in (("train", [named.get("train")]), ("tests", _list(named.get("tests")))):
            for name in names:
                if isinstance(name, str) and name not in defined:
                    message = f"{name!r} is not defined; `sources` has {', '.join(map(str, defined))}"
                    yield ("directions", direction, key), message


def _without_ratios(merged: Mapping[str, Any]) -> Iterator[Problem]:
    matrix = _section(merged, "matrix")
    for method, settings in _section(merged, "length_methods").items():
        ratios = settings.get("ratios") if isinstance(settings, Mapping) else None
        if method in _list(matrix.get("methods")) and isinstance(ratios, Mapping):
            for direction in _list(matrix.get("directions")):
                if direction not in ratios:
                    yield ("length_methods", method, "ratios"), f"no ratios for direction {direction}; add that key"


def _unknown_orders(merged: Mapping[str, Any]) -> Iterator[Problem]:
    from entropy_valley.decoding.orders import ORDERS

    for name in _list(_section(merged, "matrix").get("orders")):
        if name not in ORDERS:
            yield ("matrix", "orders"), f"{name!r} is no reveal order; there is {', '.join(ORDERS)}"


def _without_compared_methods(merged: Mapping[str, Any]) -> Iterator[Problem]:
    methods = _list(_section(merged, "matrix").get("methods"))
    missing = [name for name in ("oracle", "ratio", "ev") if name not in methods]
    if missing:
        yield ("matrix", "methods"), f"the tables compare oracle, ratio and ev; add {', '.join(missing)}"


def _outside_the_matrix(merged: Mapping[str, Any]) -> Iterator[Problem]:
    matrix, tables = _section(merged, "matrix"), _section(merged, "tables")
    for key, among in (("backbone", "backbones"), ("order", "orders"), ("steps", "steps")):
        if key in tables and tables[key] not in _list(matrix.get(among)):
            yield ("tables", key), f"is not among matrix.{among}; name one that is"
    for backbone in _section(matrix, "seeds_of"):
        if backbone not in _section(merged, "backbones"):
            yield ("matrix", "seeds_of", backbone), "is not defined under `backbones`"


def _without_filters(merged: Mapping[str, Any]) -> Iterator[Problem]:
    filters = _section(_section(merged, "corpus"), "filters")
    languages = {code for name in _list(_section(merged, "matrix").get("directions")) for code in str(name).split("-")}
    for code in sorted(languages - filters.keys()):
        yield ("corpus", "filters"), f"no length limits for language {code}; add that key"


def _section(merged: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = merged.get(key)
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
