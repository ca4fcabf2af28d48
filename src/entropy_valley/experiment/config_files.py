"""A config file as YAML: what its readers would take without a word is an error."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import yaml

from entropy_valley.errors import InputError
from entropy_valley.plain_text import impossible

INTEGER, NULL = "tag:yaml.org,2002:int", "tag:yaml.org,2002:null"
MOST = 1_000_000  # values of a config: a short file may repeat parts of parts until they are more than memory holds


class _Refused(yaml.MarkedYAMLError):
    """What YAML's readers would take: a key twice, of which they take the last; a number with a comma; a character that
    no text has; parts that hold themselves, or too many."""


class _Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # the C library's, where there is one, is faster
    """Reads plain YAML; what is :class:`_Refused` is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and first.setdefault(key.value, line) != line:
                problem = f"key {key.value!r} is there already, in line {first[key.value]}"
                raise _Refused(problem=problem, note="Keep one of them.", problem_mark=key.start_mark)
        for (key, value), (second, nothing) in itertools.pairwise(node.value):
            if [value.tag, second.tag, nothing.tag] == [INTEGER, INTEGER, NULL]:
                number = f"{value.value},{second.value}"
                problem = f"{key.value}: {number} is {value.value} and a key {second.value} without a value"
                raise _Refused(problem=problem, note=f"Write {number.replace(',', '.')}.", problem_mark=key.start_mark)
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
