"""Config files: read, laid over each other, written out, checked. All errors are reported at once."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from entropy_valley.canvas.length_methods import LENGTH_METHODS
from entropy_valley.errors import InputError
from entropy_valley.experiment import typos
from entropy_valley.experiment.checks import Problem, cross_problems
from entropy_valley.experiment.expansion import Expanded, KeyPath, expand, overlay
from entropy_valley.experiment.feasibility import Further, infeasible
from entropy_valley.experiment.schema import Experiment
from entropy_valley.plain_text import impossible
from entropy_valley.spelling import Unknown, either, nearest, question

BASE = ("config/studies.yaml", "config.yaml")  # every other file is laid over these
MISSING = object()
MOST = 1_000_000  # values of a config: a short file may repeat parts of parts until they are more than memory holds


class _Refused(yaml.MarkedYAMLError):
    """What YAML's readers would take: a key twice, of which they take the last; a character that no text has; parts
    that hold themselves, or too many."""


class _Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # the C library's, where there is one, is faster
    """Reads plain YAML; what is :class:`_Refused` is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and first.setdefault(key.value, line) != line:
                problem = f"key {key.value!r} is there already, in line {first[key.value]}"
                raise _Refused(problem=problem, note="Keep one of them.", problem_mark=key.start_mark)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        if isinstance(node, yaml.ScalarNode) and (problem := impossible(node.value)):
            raise _Refused(problem=problem, note="Remove it.", problem_mark=node.start_mark)
        return super().construct_scalar(node)

    def construct_document(self, node: yaml.Node) -> Any:
        _size(node, {})
        return super().construct_document(node)


def _size(node: yaml.Node, known: dict[int, int | None]) -> int:
    """The values of a node with all that its aliases stand for; ``known`` has those of nodes, None while counted."""
    if id(node) not in known:
        known[id(node)] = None
        parts = node.value if isinstance(node, yaml.CollectionNode) else ()
        flat = itertools.chain.from_iterable(parts) if isinstance(node, yaml.MappingNode) else parts
        known[id(node)] = 1 + sum(_size(part, known) for part in flat)
    size = known[id(node)]
    if size is None or size > MOST:
        problem = "holds itself" if size is None else f"stands for more than {MOST:,} values"
        raise _Refused(problem=problem, note="Write its values out.", problem_mark=node.start_mark)
    return size


def base_files(root: str | Path = ".") -> list[Path]:
    """The two files of the repository that every config starts from, the first below the second."""
    return [Path(root) / name for name in BASE]


def near(path: str | Path) -> str:
    """A path as people write it, relative where it is inside this folder: Snakemake makes what it is given absolute."""
    path, here = Path(path), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _nothing_further(experiment: Experiment) -> list[Problem]:
    return []


def load_files(paths: Iterable[str | Path], further: Further = _nothing_further) -> Experiment:
    """Read config files, each laid over those before it as Snakemake does, and check the result."""
    paths = list(paths)
    return load(merge(paths), paths, further)


def merge(paths: Iterable[str | Path]) -> dict[str, Any]:
    """Config files, each laid over those before it, unchecked and with their short forms."""
    return functools.reduce(overlay, map(read_yaml, paths), {})


def read_yaml(path: str | Path) -> dict[str, Any]:
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), _Plain)
    except FileNotFoundError:
        raise InputError(path, "file not found", "Check the path given to --configfile.") from None
    except IsADirectoryError:
        raise InputError(path, "is a folder, not a file", "Name a file of YAML.") from None
    except _Refused as error:
        raise InputError(f"{path}:{error.problem_mark.line + 1}", error.problem, error.note) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(path, f"not YAML ({error})", "Mend the line it names.") from None
    if not isinstance(content, dict):
        raise InputError(path, "holds no mapping", "Start from config.yaml.")
    return content


def load(
    merged: Mapping[str, Any], paths: Sequence[str | Path] = (), further: Further = _nothing_further
) -> Experiment:
    """Check a merged config. ``further`` finds problems that only the rooms above this one know.

    Raises one InputError that lists every problem: the file that sets the key, the key's path, its value, and what
    would be right.
    """
    for path in paths:
        read_yaml(path)  # Snakemake, which has merged them, lets a mapping repeat a key
    expanded, experiment, problems = _checked(merged)
    if problems:
        problems = _without_echoes(problems, expanded, merged)
    elif experiment is not None:
        problems = infeasible(experiment, further)
    if problems or experiment is None:
        lines = list(dict.fromkeys(f"{_place(path, expanded, merged, paths)}: {message}" for path, message in problems))
        raise InputError(
            "config",
            f"{len(lines)} problem{'s' if len(lines) > 1 else ''}:" + "".join(f"\n  {line}" for line in lines),
            "\ndocs/config.schema.json lists every key",
        )
    return experiment


def _checked(merged: Mapping[str, Any]) -> tuple[Expanded, Experiment | None, list[Problem]]:
    """A config without short forms, its model if there is one, and what is wrong with it."""
    expanded = expand(merged)
    problems, experiment = [*expanded.problems], None
    try:
        experiment = Experiment.model_validate(expanded.config)
    except ValidationError as error:
        problems += [_problem(item, expanded.config) for item in error.errors()]
    problems += [*cross_problems(expanded.config), *_true_for_one(expanded.config, experiment)]
    return expanded, experiment, problems


def _without_echoes(problems: list[Problem], expanded: Expanded, merged: Mapping[str, Any]) -> list[Problem]:
    """Without the problems that are gone once mistyped keys, then names, are spelled as they are meant."""
    mistyped = [problem for problem in problems if isinstance(problem[1], Unknown) and problem[1].meant]
    keys = [(path, message) for path, message in mistyped if path[-1] == message.name]
    for some in filter(None, (keys, [problem for problem in mistyped if problem not in keys])):
        meant = typos.mended(merged, [(expanded.as_written(path), message) for path, message in some])
        left = [*some, *_checked(meant)[2]]
        problems = [problem for problem in problems if problem in left]
    return problems


def _true_for_one(given: Any, taken: Any, path: KeyPath = ()) -> Iterator[Problem]:
    """Where the config says true or false and pydantic has made a number of it."""
    if isinstance(given, bool) and isinstance(taken, int | float) and not isinstance(taken, bool):
        yield path, "give a number"
    pairs = enumerate(given) if isinstance(given, list) else given.items() if isinstance(given, dict) else ()
    for key, value in pairs:
        yield from _true_for_one(value, _part(taken, key), (*path, key))


def _part(taken: Any, key: Any) -> Any:
    """What a checked config has under a key; None where it has nothing of this name."""
    try:
        return taken[key] if isinstance(taken, dict | list | tuple) else getattr(taken, key)
    except (LookupError, AttributeError, TypeError):
        return None


def _problem(item: Any, config: Any) -> Problem:
    """Where and what, of one of pydantic's errors."""
    path = _path(item["loc"], config)
    block = _value(path[:-1], config)
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


def _place(path: KeyPath, expanded: Expanded, merged: Mapping[str, Any], files: Sequence[str | Path]) -> str:
    """The file, the key and its value; a key made from a short form is named as the file says it."""
    written = expanded.as_written(path)
    values = [value for value in (_value(path, expanded.config), _value(written, merged)) if value is not MISSING]
    shown = "" if values and isinstance(values[0], Mapping) else f" = {values[0]!r}" if values else " is missing"
    return f"{_origin(written, files)}{'.'.join(map(str, written))}{shown}"


def _value(path: KeyPath, node: Any) -> Any:
    """What stands at a path, or MISSING."""
    for key in path:
        there = key in node if isinstance(node, Mapping) else isinstance(node, list) and key in range(len(node))
        if not there:
            return MISSING
        node = node[key]
    return node


def _origin(path: KeyPath, files: Sequence[str | Path]) -> str:
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
