"""Config files: read, laid over each other, short forms written out, checked.

Errors come in two rounds, all of a round at once: keys and values, then names that nothing defines and what cannot run.
"""

import functools
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from entropy_valley.errors import InputError, brief, unknown
from entropy_valley.experiment.config.checks import Further, KeyPath, Problem, find_problems
from entropy_valley.experiment.config.schema import Experiment
from entropy_valley.files import read_once, regular
from entropy_valley.settings import IN_CONFIG, words_of
from entropy_valley.texts import counted, decoded

BASE = ("config/studies.yaml", "config.yaml")  # every other file is laid over these
MISSING = object()
# By section the key of a block that names another one, which it is laid over: of a method only over the ratios.
SHORT_FORMS = {"backbones": "variant_of", "length_methods": "same_ratios_as"}
EXTENDS = "extends"  # the key with the files that a file is laid over, as if they stood before it on the command line
# A copy of the repository's config files, or links to them.
INSTALLED = Path(__file__).parents[2] / "defaults"
RELEASED = "config/released.yaml"
SUFFIXES = (".yaml", ".yml", ".json")
ELSEWHERE = "Where another config file has a backbone, name this file, as `extends: config/demo.yaml`. "
LAST = "Write targets and other files before --configfile, which takes all that follows it."


def base_files(root: str | Path = ".") -> list[Path]:
    """The two files of the repository that every config starts from, the first below the second."""
    return [Path(root) / name for name in BASE]


def near(path: str | Path) -> str:
    """A path as people write it, relative where it is inside this folder: Snakemake makes what it is given absolute."""
    path, here = Path(path).resolve(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C library's, where there is one, is faster


class _Loader(_SafeLoader):
    """Reads plain YAML. A key that a block has twice is an error: other readers take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        first: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and first.setdefault(key.value, key) is not key:
                problem = f"key {key.value!r} is there already, in line {first[key.value].start_mark.line + 1}"
                place = f"{key.start_mark.name}:{key.start_mark.line + 1}"
                raise InputError(place, problem, "Keep one of them.")
        return super().construct_mapping(node, deep)


# YAML 1.1 has 1e-3 for a text: its numbers need a point and a sign, as 1.0e-3.
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), "-+0123456789")


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The content of a config file; raise InputError for one that cannot be read, see also :class:`_Loader`."""
    if not Path(path).exists():
        raise InputError(path, "file not found", f"Check the path. {LAST}")
    return _content(path)


@read_once(32)
def _content(path: Path) -> dict[str, Any]:
    """Read once, since parsing takes longest of the start of a workflow."""
    file = io.StringIO(decoded(path, regular(path).read_bytes()))
    file.name = str(path)  # for the places of errors
    remedy = "Correct this line." if path.suffix in SUFFIXES else LAST
    try:
        content = yaml.load(file, _Loader)
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: a date of no calendar
        problem = f"not YAML ({' '.join(str(error).split())})"
        tabs = "Indent with spaces, not with tabs. " * ("cannot start any token" in problem)
        raise InputError(path, problem, tabs + remedy) from None
    if not isinstance(content, dict):
        remedy = f"Write keys into it, such as `results: results/mine`. {LAST}"
        raise InputError(path, "is no config: it has no keys", remedy)
    return content


def load_files(paths: Sequence[str | Path], further: Further = lambda experiment: []) -> Experiment:
    """Read config files, each laid over those before it as Snakemake does, and check the result."""
    return load_merged(merge(paths), paths, further)


def read_files(paths: Iterable[str | Path]) -> dict[str, dict[str, Any]]:
    """The content of config files by path, in the order in which each is laid over those before it.

    Before each file stand those that it :data:`EXTENDS`. A file stands once, where it comes first.
    """
    contents: dict[str, dict[str, Any]] = {}
    begun: set[str] = set()

    def read(path: str) -> None:
        if path not in begun:
            begun.add(path)
            content = read_yaml(path)
            for name in extends(content):
                other = near(Path(path).parent / name)
                if not Path(other).is_file():
                    problem = f"extends {other}, which is not a file"
                    raise InputError(path, problem, "The path is from the file's folder.")
                read(other)
            contents[path] = content

    for path in paths:
        read(near(path))
    return contents


def extends(content: Mapping[str, Any]) -> list[str]:
    """The files that a config file extends, as it names them; what is no such list, the schema refuses."""
    names = content.get(EXTENDS)
    names = [names] if isinstance(names, str) else names
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def merge(paths: Iterable[str | Path]) -> dict[str, Any]:
    """Config files, each laid over those before it, unchecked and with their short forms."""
    return functools.reduce(overlay, read_files(paths).values(), {})


def overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` laid on ``base``: mappings are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = overlay(merged[key], value) if both else value
    return merged


def load_merged(
    merged: Mapping[str, Any], paths: Sequence[str | Path] = (), further: Further = lambda experiment: []
) -> Experiment:
    """Check a merged config. ``further`` finds problems that only the packages above this one know.

    Raises one InputError that lists every problem: the file that sets the key, the key's path, its value, and what
    would be right. Keys and values come first: names are looked up in a config whose blocks are all right.
    """
    files = read_files(paths)  # Snakemake has merged them, but lets a key stand twice
    config, found = expand(merged)
    try:
        experiment = Experiment.model_validate(config, context=IN_CONFIG)
    except ValidationError as error:
        raise _refused([*found, *_of_values(error, config)], config, merged, files) from None
    if found := found or find_problems(experiment, further):
        raise _refused(found, config, merged, files)
    return experiment


def read_values(value: Any, in_files: Any) -> Any:
    """A merged config with numbers, true, false and null of the command line as YAML reads them.

    Of ``--config``, Snakemake leaves ``yes``, and all that stands inside a block, as text.
    """
    if isinstance(value, Mapping):
        files = in_files if isinstance(in_files, Mapping) else {}
        return {key: read_values(one, files.get(key)) for key, one in value.items()}
    if value == in_files or not isinstance(value, str | list):
        return value
    if isinstance(value, list):
        return [read_values(one, None) for one in value]
    try:
        read = yaml.load(value, _Loader)
    except (yaml.YAMLError, InputError):
        return value
    return read if read is None or isinstance(read, bool | int | float) else value


# --- Short forms: variants of backbones, and ratios that are those of another length method.


def expand(merged: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """A merged config with every short form written out. A bad one becomes a problem, and its block is left out."""
    config, problems = dict(merged), list[Problem]()
    for section, key in SHORT_FORMS.items():
        if isinstance(blocks := merged.get(section), Mapping):
            config[section] = _laid_over(section, key, blocks, problems)
    return config, problems


def _laid_over(section: str, key: str, blocks: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Each block laid over the one that its ``key`` names, which names none itself; over its ratios in a method."""
    bases = {name: block for name, block in blocks.items() if isinstance(block, Mapping) and not block.get(key)}
    if section == "length_methods":
        bases = {name: {"ratios": block["ratios"]} for name, block in bases.items() if "ratios" in block}
    whole = {}
    for name, block in blocks.items():
        other = at((key,), block)
        if other in (MISSING, None):
            whole[name] = block
        elif isinstance(other, str) and other in bases:
            whole[name] = overlay(bases[other], block)
            if section == "length_methods":  # whose classes have no such key
                del whole[name][key]
        else:
            problem = unknown(other, "names no block that it can follow", bases, f"`{section}` has")
            problems.append(((section, name, key), problem))
    return whole


def as_written(path: KeyPath, merged: Mapping[str, Any]) -> KeyPath:
    """The key of the config files that sets what a key of the expanded config holds."""
    if len(path) < 2 or at(path, merged) is not MISSING:
        return path
    section, name, *rest = path
    taken = (section, at((section, name, SHORT_FORMS.get(str(section), "")), merged), *rest)
    return path if at(taken, merged) is MISSING else taken


def at(path: KeyPath, node: Any) -> Any:
    """What stands at a path, or MISSING."""
    try:
        for key in path:
            node = node[key]
    except (KeyError, IndexError, TypeError):
        return MISSING
    return node


# --- Problems of a config as one error: a line for each, with file, key, value, and what would be right.


def _of_values(error: ValidationError, config: Mapping[str, Any]) -> list[Problem]:
    """Pydantic's errors, those of one key together: a value of several kinds has one for each kind."""
    messages: dict[KeyPath, dict[str, None]] = {}  # each once
    for item in error.errors():
        location, message, context = item["loc"], words_of(item), item.get("ctx", {})
        if item["type"].startswith("union_tag_"):  # of the key that tells blocks apart
            location = (*location, context["discriminator"].strip("'"))
        if location[-1] == "[key]":
            message = f"its name {message}"
        missing = item["type"] in ("missing", "union_tag_not_found")
        messages.setdefault(_key_path(location, config, missing), {})[message] = None
    return [(path, ", or ".join(some)) for path, some in messages.items()]


def _key_path(location: Sequence[str | int], config: Mapping[str, Any], missing: bool) -> KeyPath:
    """The place of one of pydantic's errors without the names of types, which are no keys of the file."""
    path: KeyPath = ()
    for key in location[:-1] if missing else location:
        if at((*path, key), config) is not MISSING:
            path = (*path, key)
    return (*path, location[-1]) if missing else path


def _refused(
    problems: Sequence[Problem], expanded: Mapping[str, Any], merged: Mapping[str, Any], files: dict[str, Any]
) -> InputError:
    """The error that lists every problem of an expanded config, ``merged`` from ``files``."""
    lines: dict[str, None] = {}
    for path, message in problems:
        written = as_written(path, merged)
        value = at(path, expanded)
        if value is MISSING:
            value = at(written, merged)
        shown = " is missing"
        if value is not MISSING:
            shown = "" if isinstance(value, Mapping) else f" = {brief(repr(value), 100)}"
        lines[f"\n  {_file(written, files)}{'.'.join(map(str, written))}{shown}: {message}"] = None
    backbones = any(path[-1] in ("backbones", "family") for path, _ in problems)  # that this config does not have
    remedy = f"\n{ELSEWHERE * backbones}`entropy-valley schema` prints every key."
    return InputError("config", f"{counted(len(lines), 'problem')}:{''.join(lines)}", remedy)


def _file(path: KeyPath, files: dict[str, Any]) -> str:
    """The last file that sets the longest part of a key's path."""
    for end in range(len(path), 0, -1):
        for name, content in reversed(files.items()):
            if at(path[:end], content) is not MISSING:
                return f"{name}: "
    return f"{[*files][-1]}: " if files else ""
