"""What no single key of a config can know: names that nothing defines, directions without ratios, …"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from entropy_valley.config.schema import Experiment

Problem = tuple[tuple[str | int, ...], str]


def cross_problems(merged: Mapping[str, Any]) -> list[Problem]:
    """Every problem of a merged config, variants laid over their backbones, that its schema does not see."""
    return [
        *_undefined(merged),
        *_undefined_sources(merged),
        *_without_ratios(merged),
        *_unknown_orders(merged),
        *_without_compared_methods(merged),
        *_outside_the_matrix(merged),
        *_without_filters(merged),
        *_bad_variants(merged),
        *_bad_families(merged),
        *_outside_the_instruct_table(merged),
        *_without_adapters(merged),
    ]


def unusable_methods(experiment: Experiment) -> Iterator[Problem]:
    """Selectors that cannot be made: their jobs would only say so after hours of training."""
    from entropy_valley.canvas.selectors import make_selector
    from entropy_valley.specs.jobs import selector_settings

    for method in experiment.matrix.methods:
        for direction in experiment.matrix.directions:
            try:
                make_selector(method, selector_settings(experiment, method, direction))
            except InputError as error:
                yield ("length_methods", method), f"for {direction}: {error.problem}. {error.remedy.rstrip('.')}"


def _undefined(merged: Mapping[str, Any]) -> Iterator[Problem]:
    for block, key, section in (
        ("matrix", "backbones", "backbones"),
        ("matrix", "directions", "directions"),
        ("matrix", "methods", "length_methods"),
        ("autoregressive", "backbones", "backbones"),
        ("instruct", "backbones", "backbones"),
    ):
        defined = [name for name, value in _section(merged, section).items() if value is not None]
        for name in _list(_section(merged, block).get(key)):
            if name not in defined:
                yield (block, key), f"{name!r} is not defined; `{section}` has {', '.join(map(str, defined))}"


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


def _bad_variants(merged: Mapping[str, Any]) -> Iterator[Problem]:
    backbones = _section(merged, "backbones")
    for name, section in backbones.items():
        base = section.get("variant_of") if isinstance(section, Mapping) else None
        if base is None:
            continue
        if base == name or not isinstance(backbones.get(base), Mapping):
            yield ("backbones", name, "variant_of"), "is no other backbone; name one that has a checkpoint"
        elif backbones[base].get("variant_of"):
            yield ("backbones", name, "variant_of"), "is a variant itself; name the backbone that has the checkpoint"
        else:
            for key in ("family", "hub", "folder", "pretraining"):
                if section.get(key) != backbones[base].get(key):
                    yield ("backbones", name, key), f"a variant has the checkpoint of {base}; remove this key"


def _bad_families(merged: Mapping[str, Any]) -> Iterator[Problem]:
    from entropy_valley.backbone.families import find_family

    causal = {True: ("autoregressive",), False: ("matrix", "instruct")}
    for name, section in _section(merged, "backbones").items():
        if not isinstance(section, Mapping) or not isinstance(section.get("family"), str):
            continue
        try:
            family = find_family(section["family"])
        except InputError as error:
            yield ("backbones", name, "family"), f"{error.problem}. {error.remedy.rstrip('.')}"
            continue
        if section.get("chat") and family.chat is None:
            yield ("backbones", name, "chat"), f"the family {family.name} has no chat template; remove this key"
        for block in causal[not family.causal]:
            if name in _list(_section(merged, block).get("backbones")):
                kind = "an autoregressive" if family.causal else "no autoregressive"
                yield (block, "backbones"), f"{name!r} is of family {family.name}, {kind} one; take it out"


def _outside_the_instruct_table(merged: Mapping[str, Any]) -> Iterator[Problem]:
    instruct = _section(merged, "instruct")
    if not _list(instruct.get("backbones")):
        return
    if instruct.get("direction") not in _list(_section(merged, "matrix").get("directions")):
        yield ("instruct", "direction"), "is not among matrix.directions; name one that is"
    if instruct.get("testset") not in _section(merged, "sources"):
        yield ("instruct", "testset"), "is not defined under `sources`"


def _without_adapters(merged: Mapping[str, Any]) -> Iterator[Problem]:
    """Runs that `adapters: released` has no adapter for: nothing may be trained then."""
    matrix, released = _section(merged, "matrix"), _section(merged, "released")
    if merged.get("adapters") != "released":
        return
    wanted = [
        (backbone, direction, seed)
        for backbone in (*_list(matrix.get("backbones")), *_list(_section(merged, "autoregressive").get("backbones")))
        for direction in _list(matrix.get("directions"))
        for seed in _list(_section(matrix, "seeds_of").get(backbone, matrix.get("seeds")))
    ]
    instruct = _section(merged, "instruct")
    wanted += [(name, instruct.get("direction"), instruct.get("seed")) for name in _list(instruct.get("backbones"))]
    for backbone, direction, seed in dict.fromkeys(wanted):
        zero_shot = _section(_section(merged, "backbones"), backbone).get("zero_shot")
        if not zero_shot and seed not in _section(_section(released, backbone), direction):
            yield (
                ("released", backbone, direction, seed),
                "`adapters: released` needs it; give it, or drop its run",
            )


def _section(merged: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = merged.get(key)
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
