"""Config files: read, laid over each other, written out, checked.

Errors come in two rounds, all of a round at once: keys, values and names that nothing defines, then what cannot run.
"""

from __future__ import annotations

import copy
import functools
import io
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from entropy_valley.config.checks import Further, find_problems, nothing_further, undefined_names
from entropy_valley.config.expand import KeyPath, Problem, expand, overlay
from entropy_valley.config.methods import method_settings
from entropy_valley.config.schema import Experiment
from entropy_valley.demo import shipped
from entropy_valley.errors import InputError, brief, question, unknown
from entropy_valley.files import regular
from entropy_valley.settings import IN_CONFIG, PATTERNS, words_of
from entropy_valley.texts import counted, decoded

BASE = ("config/studies.yaml", "config.yaml")  # every other file is laid over these
EXTENDS = "extends"  # the key with the files that a file is laid over, as if they stood before it on the command line
ELSEWHERE = f"Where another config file has a backbone, name this file, as `{EXTENDS}: config/demo.yaml`. "
INSTALLED = Path(__file__).parents[1] / "defaults"  # a copy of the repository's config files, or links to them
RELEASED, DEMO = "config/released.yaml", "config/demo.yaml"
MISSING = object()
_CORRECT = "Correct this line."
SUFFIXES = (".yaml", ".yml", ".json")
LAST = "Write targets and other files before --configfile, which takes all that follows it."
# What is wrong, by pydantic's type of an error, where its own words are about Python's objects.
MESSAGES = {
    "missing": "it is required",
    "model_type": "must be a block of keys",
    "dict_type": "must be a block of keys",
    "list_type": "must be a list, in brackets: [ ]",
    "too_short": "must have at least {min_length} item",
    "union_tag_not_found": "it is required",
    "union_tag_invalid": "must be one of {expected_tags}",
}


def base_files(root: str | Path = ".") -> list[Path]:
    """The two files of the repository that every config starts from, the first below the second."""
    return [Path(root) / name for name in BASE]


def near(path: str | Path) -> str:
    """A path as people write it, relative where it is inside this folder: Snakemake makes what it is given absolute."""
    path, here = Path(path).resolve(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C library's, where there is one, is faster


class _Loader(_SafeLoader):
    """Reads plain YAML. A key that a block has twice is an error: other readers take the last. So is a number in octal
    (032 is 26), in hexadecimal (0x20 is 32), in binary, in base 60 (1:04 is 64), or with _ (1_0 is 10), and so is a
    block that holds itself."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=True)  # all at once: else a block may hold itself
        except ValueError as error:  # a number of too many digits, a date of no calendar
            raise InputError(_place(node), f"{brief(node.value, 40)} cannot be read ({error})", _CORRECT) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        first: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and first.setdefault(key.value, key) is not key:
                problem = f"key {key.value!r} is there already, in line {first[key.value].start_mark.line + 1}"
                raise InputError(_place(key), problem, "Keep one of them.")
            if key.tag == "tag:yaml.org,2002:bool":  # `no` is also Norwegian
                problem = f"YAML reads the key {key.value} as {'true' if self.construct_yaml_bool(key) else 'false'}"
                raise InputError(_place(key), problem, f'Write it with quotation marks: "{key.value}".')
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        is_float = node.tag.endswith("float")
        value = self.construct_yaml_float(node) if is_float else self.construct_yaml_int(node)
        if re.search("[:_]", node.value) or (not is_float and re.fullmatch("[-+]?0[0-9a-zA-Z]+", node.value)):
            remedy = "Write it in decimal, without leading zeros, colons and _; a text needs quotation marks."
            raise InputError(_place(node), f"YAML reads {node.value} as {value}", remedy)
        return value


def _place(at: Any) -> str:
    """The file and line of a node or an event of YAML."""
    return f"{at.start_mark.name}:{at.start_mark.line + 1}"


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)


@functools.lru_cache(maxsize=32)
def _parsed(path: str | Path, text: str) -> Any:
    """What the text of a file says. A start of the workflow reads each file four times, and parsing takes longest."""
    file = io.StringIO(text)
    file.name = path  # for the places of errors
    return yaml.load(file, _Loader)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The content of a config file; raise InputError for one that cannot be read, see also :class:`_Loader`."""
    if not Path(path).exists():
        raise InputError(path, "file not found", f"Check the path. {LAST}")
    text = decoded(path, regular(path).read_bytes())
    try:
        content = copy.deepcopy(_parsed(path, text))
    except RecursionError:
        raise InputError(path, "is nested too deeply", "Remove brackets and blocks.") from None
    except yaml.YAMLError as error:
        problem = f"not YAML ({' '.join(str(error).split())})"
        if Path(path).suffix not in SUFFIXES:
            raise InputError(path, problem, LAST) from None
        tab = "cannot start any token" in problem
        raise InputError(path, problem, "Indent with spaces, not with tabs." if tab else _CORRECT) from None
    if not isinstance(content, dict):
        remedy = "Write keys into it, such as `results: results/mine`." if Path(path).suffix in SUFFIXES else LAST
        raise InputError(path, "is no config: it has no keys", remedy)
    return content


def load_files(paths: Iterable[str | Path], further: Further = nothing_further) -> Experiment:
    """Read config files, each laid over those before it as Snakemake does, and check the result."""
    paths = list(paths)
    return load_merged(merge(paths), paths, further)


def read_files(paths: Iterable[str | Path]) -> dict[str, dict[str, Any]]:
    """The content of config files by path, in the order in which each is laid over those before it.

    Before each file stand those that it :data:`EXTENDS`. A file stands once, where it comes first.
    """
    contents: dict[str, dict[str, Any]] = {}

    def read(path: str, above: tuple[str, ...]) -> None:
        if path in above:
            chain = " → ".join([*above[above.index(path) :], path])
            raise InputError(path, f"extends itself: {chain}", "Remove `extends` from one of them.")
        if path not in contents:
            content = read_yaml(path)
            for name in extends(content):
                other = near(Path(path).parent / name)
                if not Path(other).is_file():
                    problem = f"extends {other}, which is not a file"
                    raise InputError(path, problem, "The path is from the file's folder.")
                read(other, (*above, path))
            contents[path] = content

    for path in paths:
        read(near(path), ())
    return contents


def extends(content: Mapping[str, Any]) -> list[str]:
    """The files that a config file extends, as it names them; what is no such list, the schema refuses."""
    names = content.get(EXTENDS)
    names = [names] if isinstance(names, str) else names
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def merge(paths: Iterable[str | Path]) -> dict[str, Any]:
    """Config files, each laid over those before it, unchecked and with their short forms."""
    return functools.reduce(overlay, read_files(paths).values(), {})


def load_merged(
    merged: Mapping[str, Any],
    paths: Sequence[str | Path] = (),
    further: Further = nothing_further,
    checked: bool = False,
) -> Experiment:
    """Check a merged config. ``further`` finds problems that only the packages above this one know. ``checked``: what
    cannot run was looked for before, which takes longer than all else.

    Raises one InputError that lists every problem: the file that sets the key, the key's path, its value, and what
    would be right. Keys and values come first: names are looked up in a config whose blocks are all right.
    """
    if (encoding := sys.getfilesystemencoding()) != "utf-8":  # names of files would be read otherwise than written
        remedy = "Unset PYTHONUTF8, or set it to 1."
        raise InputError("PYTHONUTF8", f"is off, and Python reads the names of files as {encoding}", remedy)
    files = read_files(paths)  # Snakemake has merged them, but lets a key stand twice
    expanded, experiment = expand(merged), None
    problems = list(expanded.problems)
    try:
        experiment = Experiment.model_validate(expanded.config, context=IN_CONFIG)
    except ValidationError as error:
        problems += _problems(error, expanded.config)
    if experiment is not None and not problems:
        problems = [] if checked else find_problems(experiment, further)
    elif files:
        problems += _undefined_names([expanded.as_written(path) for path, _ in problems], files)
    if experiment is None or problems:
        lines = []
        for path, message in problems:
            written = expanded.as_written(path)
            values = [_value(path, expanded.config), _value(written, merged)]
            value = next((one for one in values if one is not MISSING), MISSING)
            lines.append(f"{_file(written, files)}{'.'.join(map(str, written))}{_shown(value)}: {message}")
        lines = list(dict.fromkeys(lines))
        listing = f"{counted(len(lines), 'problem')}:" + "".join(f"\n  {line}" for line in lines)
        backbones = any(path[-1] in ("backbones", "family") for path, _ in problems)  # that this config does not have
        raise InputError("config", listing, f"\n{ELSEWHERE * backbones}`entropy-valley schema` prints every key.")
    return experiment


def _undefined_names(wrong: Sequence[KeyPath], files: Mapping[str, dict[str, Any]]) -> list[Problem]:
    """Names that nothing defines in a config whose values at ``wrong`` are bad: they are left out, so that files below
    set these keys. None where no file does and the config needs them."""
    contents = [copy.deepcopy(content) for content in files.values()]
    wrong = [tuple(itertools.takewhile(lambda key: isinstance(key, str), path)) for path in wrong]
    for keys in wrong:
        for content in reversed(contents):
            if isinstance(block := _value(keys[:-1], content), dict) and keys[-1] in block:
                del block[keys[-1]]
                break
    expanded = expand(functools.reduce(overlay, contents, {}))
    try:
        experiment = Experiment.model_validate(expanded.config, context=IN_CONFIG)
    except ValidationError:
        return []
    in_files = {key for content in files.values() for key in _keys(content)}  # perhaps in a block that is left out
    return [] if expanded.problems else list(undefined_names(experiment, in_files, wrong))


def _keys(block: Mapping[str, Any]) -> Iterator[str]:
    for key, value in block.items():
        yield key
        yield from _keys(value) if isinstance(value, Mapping) else ()


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


def _problems(error: ValidationError, config: Any) -> list[Problem]:
    """Pydantic's errors, those of one key together: a value of several kinds has one for each kind."""
    messages: dict[KeyPath, list[str]] = {}
    for item in error.errors():
        context, location = item.get("ctx", {}), item["loc"]
        message = MESSAGES[item["type"]].format_map(context) if item["type"] in MESSAGES else words_of(item)
        if item["type"].startswith("union_tag_"):  # of the key that tells blocks apart
            location = (*location, context["discriminator"].strip("'"))
        if item["type"] == "string_pattern_mismatch":
            message = f"must be {PATTERNS[context['pattern']]}" if context["pattern"] in PATTERNS else message
        message = f"its name {message}" if location[-1] == "[key]" else message
        choices = re.findall("'([^']+)'", str(context.get("expected_tags", context.get("expected", ""))))
        hint = question(context.get("tag", item["input"]), choices if len(choices) > 2 else ()).rstrip()
        if item["type"] in ("int_type", "float_type"):
            hint = _number(item["input"], item["type"] == "int_type")
        if item["type"] == "string_type" and isinstance(item["input"], int | float | date):  # a name such as 500
            hint = f'YAML reads it as another value; a text needs quotation marks: "{item["input"]}"'
        messages.setdefault(_key_path(location, config, item["type"] in ("missing", "union_tag_not_found")), []).append(
            f"{message}. {hint}" if hint else message
        )
    return [(path, ", or ".join(dict.fromkeys(some))) for path, some in messages.items()]


def _number(text: Any, whole: bool) -> str:
    """How a number is written that YAML reads as a text, such as 1e-3: for a remedy; empty if the text is none."""
    match = re.fullmatch(r"([-+]?\d+)(\.\d*)?(?:[eE]([-+]?)(\d+))?", text if isinstance(text, str) else "")
    if match is None or (whole and not float(text).is_integer()):
        return ""
    digits, point, sign, power = match.groups()
    number = text if power is None else f"{digits}{point or '.0'}e{sign or '+'}{power}"
    return f"YAML reads it as a text; write {int(float(text)) if whole else number}, without quotation marks"


def _key_path(location: Sequence[str | int], config: Any, missing: bool) -> KeyPath:
    """The place of one of pydantic's errors without the names of types, which are no keys of the file."""
    *outer, last = location
    path: KeyPath = ()
    for key in location if not missing else outer:
        if _value((*path, key), config) is not MISSING:
            path = (*path, key)
    return (*path, last) if missing else path


def _value(path: KeyPath, node: Any) -> Any:
    """What stands at a path, or MISSING."""
    for key in path:
        inside = key in node if isinstance(node, Mapping) else isinstance(node, list) and key in range(len(node))
        if not inside:
            return MISSING
        node = node[key]
    return node


def _shown(value: Any) -> str:
    return " is missing" if value is MISSING else "" if isinstance(value, Mapping) else f" = {brief(repr(value), 100)}"


def _file(path: KeyPath, files: Mapping[str, Any]) -> str:
    """The last file that sets the longest part of a key's path."""

    def depth(content: Any) -> int:
        return sum(_value(path[:end], content) is not MISSING for end in range(1, len(path) + 1))

    deepest = max(map(depth, files.values()), default=0)
    return next((f"{name}: " for name, content in reversed([*files.items()]) if depth(content) == deepest), "")


# --- Models with all that belongs to them, for the library: those of the paper's authors, and LLaDA-tiny.


def released(direction: str) -> dict[str, Any]:
    """What belongs together for a direction, such as ``en-zh``, as arguments of ``Translator.load``.

    ``backbone`` and ``adapter`` are repositories of the hub, ``prompt`` is that of the adapter's training, and
    ``ratios`` are those that EV tries in the paper. Raises InputError for a direction without a released adapter.
    """
    experiment = load_files([*base_files(INSTALLED), INSTALLED / RELEASED])
    backbone = experiment.tables.backbone
    hub, adapters = experiment.backbones[backbone].hub, experiment.released[backbone]
    if direction not in adapters:
        problem = unknown(direction, f"no released adapter for {direction!r}", adapters)
        raise InputError("direction", problem, "Give one of these.")
    (adapter,) = adapters[direction].values()
    return {
        "backbone": hub and hub.repository,
        "adapter": f"{adapter.repository}@{adapter.revision}" if adapter.revision else adapter.repository,
        "prompt": experiment.directions[direction].prompt,
        "ratios": method_settings(experiment, "ev", direction)["ratios"],
    }


def tiny(direction: str) -> dict[str, Any]:
    """LLaDA-tiny, the demo's model, which comes with this package: arguments of ``Translator.load`` for a direction.

    It knows the words of the demo's made-up sentences. Raises InputError for a direction other than ``en-zh``,
    ``zh-en`` and ``en-de``.
    """
    adapter = shipped.adapter(direction)
    experiment = load_files([*base_files(INSTALLED), INSTALLED / DEMO])
    return {
        "backbone": shipped.CHECKPOINT,
        "adapter": adapter,
        "ratios": method_settings(experiment, "ev", direction)["ratios"],
    }
