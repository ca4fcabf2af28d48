"""Config files: read, laid over each other, written out, checked. All errors are reported at once."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from entropy_valley.errors import InputError
from entropy_valley.experiment import messages, typos
from entropy_valley.experiment.checks import Absent, Problem, cross_problems
from entropy_valley.experiment.config_files import read_yaml
from entropy_valley.experiment.expansion import Expanded, KeyPath, expand, overlay
from entropy_valley.experiment.feasibility import Further, infeasible
from entropy_valley.experiment.schema import Experiment
from entropy_valley.spelling import Unknown

BASE = ("config/studies.yaml", "config.yaml")  # every other file is laid over these


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
        lines = list(dict.fromkeys(f"{_place(one, expanded, merged, paths)}: {one[1]}" for one in problems))
        said = f"{len(lines)} problem{'s' if len(lines) > 1 else ''}:" + "".join(f"\n  {line}" for line in lines)
        raise InputError("config", said, f"{_to_add(problems, expanded)}\ndocs/config.schema.json lists every key")
    return experiment


def _to_add(problems: list[Problem], expanded: Expanded) -> str:
    """The lines of YAML that would add what is absent."""
    absent = {expanded.as_written(path): message.like for path, message in problems if isinstance(message, Absent)}
    blocks = (functools.reduce(lambda block, key: {key: block}, reversed(path), like) for path, like in absent.items())
    added = yaml.safe_dump(functools.reduce(overlay, blocks, {}), default_flow_style=None, sort_keys=False)
    return f"\nAdd to your own file, with its own numbers:\n{textwrap.indent(added, '  ').rstrip()}" if absent else ""


def _checked(merged: Mapping[str, Any]) -> tuple[Expanded, Experiment | None, list[Problem]]:
    """A config without short forms, its model if there is one, and what is wrong with it."""
    expanded = expand(merged)
    problems, experiment = [*expanded.problems], None
    try:
        experiment = Experiment.model_validate(expanded.config)
    except ValidationError as error:
        problems += messages.problems(error.errors(), expanded.config)
    of_nobody = {(*path[:-1], "ratios") for path, _ in expanded.problems if path[-1] == "same_ratios_as"}
    problems = [problem for problem in problems if problem[0] not in of_nobody]
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


def _place(problem: Problem, expanded: Expanded, merged: Mapping[str, Any], files: Sequence[str | Path]) -> str:
    """The file, the key and its value; a key made from a short form is named as the file says it. Of what is absent,
    the file that asks for it."""
    path, message = problem
    written = expanded.as_written(path)
    there = (messages.value(path, expanded.config), messages.value(written, merged))
    values = [value for value in there if value is not messages.MISSING]
    shown = "" if values and isinstance(values[0], Mapping) else f" = {values[0]!r}" if values else " is missing"
    asked = message.asked if isinstance(message, Absent) else written
    return f"{_origin(asked, files)}{'.'.join(map(str, written))}{shown}"


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
