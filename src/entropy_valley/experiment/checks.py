"""Cross-key validation: names that are not defined, directions without ratios, variants of variants, …"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from entropy_valley.errors import InputError, refusal
from entropy_valley.experiment.matrix import COMPARED, DEV
from entropy_valley.experiment.orders import order_problems
from entropy_valley.model.families import find_family
from entropy_valley.scoring.comet import RELEASED, TOY
from entropy_valley.scoring.metrics import METRICS, make_metric
from entropy_valley.spelling import Unknown, unknown

RESERVED = ("comet", "id", "digests", "sentences", "signatures")  # keys of the scores' files, names of their folders
Problem = tuple[tuple[str | int, ...], str]  # the path of a key, and what would be right


class Absent(str):
    """A message about a key that another key asks for, whose path is ``asked``; ``like`` is a value of its form."""

    asked: tuple[str, ...]
    like: Any


def cross_problems(merged: Mapping[str, Any]) -> list[Problem]:
    """Every problem of a merged config, variants laid over their backbones, that its schema does not see."""
    return [
        *_undefined(merged),
        *_undefined_sources(merged),
        *_without_ratios(merged),
        *order_problems(_section(merged, "reveal_orders"), _list(_section(merged, "matrix").get("orders"))),
        *_bad_metrics(merged),
        *_without_compared_methods(merged),
        *_outside_the_matrix(merged),
        *_beyond_the_matrix(merged),
        *_unknown_prompts(merged),
        *_unknown_families(merged),
        *_bad_variants(merged),
        *_outside_the_instruct_table(merged),
        *_not_to_be_compared(merged),
    ]


def _undefined(merged: Mapping[str, Any]) -> Iterator[Problem]:
    for block, key, section in (
        ("matrix", "backbones", "backbones"),
        ("matrix", "directions", "directions"),
        ("matrix", "methods", "length_methods"),
        ("autoregressive", "backbones", "backbones"),
        ("instruct", "backbones", "backbones"),
        ("valley", "backbones", "backbones"),
        ("pages", "backbones", "backbones"),
        ("pages", "methods", "length_methods"),
    ):
        defined = [name for name, value in _section(merged, section).items() if value is not None]
        for name in _list(_section(merged, block).get(key)):
            if name not in defined:
                yield (block, key), _not_defined(name, section, defined)


def _undefined_sources(merged: Mapping[str, Any]) -> Iterator[Problem]:
    defined = _section(merged, "sources")
    if DEV in defined:
        yield ("sources", DEV), "is the name of the development pairs; give the source another one"
    for direction, section in _section(merged, "directions").items():
        named = section if isinstance(section, Mapping) else {}
        for key, names in (("train", [named.get("train")]), ("tests", _list(named.get("tests")))):
            for name in names:
                if isinstance(name, str) and name not in defined:
                    yield ("directions", direction, key), _not_defined(name, "sources", defined)


def _without_ratios(merged: Mapping[str, Any]) -> Iterator[Problem]:
    """Directions of the matrix for which a method has no ratios."""
    matrix = _section(merged, "matrix")
    for method, settings in _section(merged, "length_methods").items():
        ratios = settings.get("ratios") if isinstance(settings, Mapping) else None
        if method in _list(matrix.get("methods")) and isinstance(ratios, Mapping):
            for direction in _list(matrix.get("directions")):
                if direction not in ratios:
                    asked = Absent(f"`matrix.directions` has {direction}")
                    asked.asked, asked.like = ("matrix", "directions"), next(iter(ratios.values()), 1.0)
                    yield ("length_methods", method, "ratios", direction), asked


def _without_compared_methods(merged: Mapping[str, Any]) -> Iterator[Problem]:
    methods = _section(merged, "matrix").get("methods")
    missing = [name for name in COMPARED if name not in _list(methods)]
    if missing and isinstance(methods, list):
        yield ("matrix", "methods"), f"the tables compare oracle, ratio and ev; add {', '.join(missing)}"


def _outside_the_matrix(merged: Mapping[str, Any]) -> Iterator[Problem]:
    matrix, tables = _section(merged, "matrix"), _section(merged, "tables")
    for key, among in (("backbone", "backbones"), ("order", "orders"), ("steps", "steps")):
        there = _list(matrix.get(among))
        if key in tables and tables[key] not in there:
            yield ("tables", key), str(unknown(tables[key], f"is not among matrix.{among}", there, "it has"))
    for backbone in _section(matrix, "seeds_of"):
        if backbone not in (defined := _section(merged, "backbones")):
            yield ("matrix", "seeds_of", backbone), _not_defined(backbone, "backbones", defined)


def _beyond_the_matrix(merged: Mapping[str, Any]) -> Iterator[Problem]:
    """Studies of directions that there are not."""
    defined = _section(merged, "directions")
    for name in _list(_section(merged, "tables").get("studies")):
        study = _section(_section(merged, "studies"), name)
        for direction in _list(study.get("directions")) if study.get("beyond_matrix") else []:
            if direction not in defined:
                yield ("studies", name, "directions"), _not_defined(direction, "directions", defined)


def _unknown_prompts(merged: Mapping[str, Any]) -> Iterator[Problem]:
    directions = _section(merged, "directions")
    for name, section in _section(merged, "backbones").items():
        other = section.get("decoding_prompt_of") if isinstance(section, Mapping) else None
        if isinstance(other, str) and other not in directions:
            yield ("backbones", name, "decoding_prompt_of"), unknown(other, f"{other} is no direction", directions)


def _unknown_families(merged: Mapping[str, Any]) -> Iterator[Problem]:
    for name, section in _section(merged, "backbones").items():
        family = section.get("family") if isinstance(section, Mapping) else None
        if isinstance(family, str) and (problem := refusal(find_family, family)):
            yield ("backbones", name, "family"), problem


def _bad_variants(merged: Mapping[str, Any]) -> Iterator[Problem]:
    backbones = _section(merged, "backbones")
    for name, section in backbones.items():
        base = section.get("variant_of") if isinstance(section, Mapping) else None
        if base is None:
            continue
        if base == name or not isinstance(base, str) or not isinstance(backbones.get(base), Mapping):
            others = [one for one in backbones if one != name]
            yield ("backbones", name, "variant_of"), unknown(base, "is no other backbone", others, "`backbones` has")
        elif backbones[base].get("variant_of"):
            yield ("backbones", name, "variant_of"), "is a variant itself; name the backbone that has the checkpoint"
        else:
            for key in ("family", "hub", "folder", "pretraining"):
                if section.get(key) != backbones[base].get(key):
                    yield ("backbones", name, key), f"a variant has the checkpoint of {base}; remove this key"


def _outside_the_instruct_table(merged: Mapping[str, Any]) -> Iterator[Problem]:
    instruct = _section(merged, "instruct")
    if not _list(instruct.get("backbones")):
        return
    for key, section in (("direction", "directions"), ("testset", "sources")):
        name, defined = instruct.get(key), _section(merged, section)
        if isinstance(name, str) and name not in defined:
            yield ("instruct", key), _not_defined(name, section, defined)


def _bad_metrics(merged: Mapping[str, Any]) -> Iterator[Problem]:
    """Further metrics that are none or whose name is taken, and unknown ones in ``tables.metrics``."""
    scoring = _section(merged, "scoring")
    comet, further = _section(scoring, "comet"), _section(scoring, "metrics")
    known = [comet.get("name") or (TOY if comet.get("training") else RELEASED), "bleu", "chrf"]
    for name, section in further.items():
        if name in (*known, *RESERVED):
            yield ("scoring", "metrics", name), "this name is taken; give the metric another one"
        if problem := _refused(section):
            yield ("scoring", "metrics", name), problem
    for name in _list(_section(merged, "tables").get("metrics")):
        if name not in (*known, *further):
            yield ("tables", "metrics"), unknown(name, f"{name!r} is no metric", (*known, *further))


def _refused(section: Any) -> str | None:
    """What is wrong with a user's own metric; of ours the schema says it."""
    named = section.get("metric") if isinstance(section, Mapping) else None
    if not isinstance(named, str) or named in METRICS:
        return None
    try:
        make_metric(named, {key: value for key, value in section.items() if key not in ("metric", "label")})
    except InputError as error:
        return str(error)
    return None


def _not_defined(name: Any, section: str, defined: Iterable[Any]) -> Unknown:
    return unknown(name, f"{name!r} is not defined", defined, f"`{section}` has")


def _section(merged: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = merged.get(key)
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    """The plain values of a list. The schema refuses lists in it, and mappings."""
    return [one for one in value if isinstance(one, Hashable)] if isinstance(value, list) else []


def _not_to_be_compared(merged: Mapping[str, Any]) -> Iterator[Problem]:
    """Systems and test sets of the human evaluation that are not defined."""
    section, places = _section(merged, "human_evaluation"), {"method": "length_methods", "backbone": "backbones"}
    shown = [(key, name) for key in ("first", "second") for name in places]
    named = [(path, _section(section, path[0]).get(path[1]), places[path[1]]) for path in shown]
    for path, name, block in [*named, (("testset",), section.get("testset"), "sources")]:
        defined = _section(merged, block)
        if isinstance(name, str) and name not in defined:
            yield ("human_evaluation", *path), _not_defined(name, block, defined)
