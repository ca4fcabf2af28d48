"""What is wrong with a config whose blocks are all right: names that nothing defines, and what cannot run.

A key says at its field which other key defines its names. Without these checks jobs would fail after hours of training.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from entropy_valley.config import matrix
from entropy_valley.config.expand import KeyPath, Problem
from entropy_valley.config.matrix import COMPARED, DEV, SETS, all_cells, methods, runs, study_cells
from entropy_valley.config.methods import method_settings, needs_anchors, reassigned_methods
from entropy_valley.config.paths import adapter_run
from entropy_valley.config.schema import BackboneSection, Experiment, Study, bleus_of
from entropy_valley.data.categories import refused
from entropy_valley.decoding.requests import KNOWN
from entropy_valley.errors import refusal, unknown
from entropy_valley.lengths import make_method
from entropy_valley.model.families import FAMILIES, find_family
from entropy_valley.model.prompt import PREFIX
from entropy_valley.settings import Refers

METRIC_FILES = ("comet", "id", "digests", "sentences", "signatures")  # keys of the scores' files, names of folders
RUN_FOLDERS = ("adapter", "latency")  # beside the sets of a run

Further = Callable[[Experiment], list[Problem]]


def nothing_further(experiment: Experiment) -> list[Problem]:
    return []


def find_problems(experiment: Experiment, further: Further = nothing_further) -> list[Problem]:
    """What is wrong: the path of each key, and what would be right; with what ``further`` finds.

    The later checks need what the earlier ones have found right.
    """
    return (
        [*undefined_names(experiment), *_taken(experiment), *_compared(experiment)]
        or [*_families(experiment), *_studies(experiment), *further(experiment)]
        or [*_methods(experiment), *_sources(experiment), *_adapters(experiment), *_unpaired(experiment)]
        or [*_tokenizers(experiment)]
    )


# --- Names: those that nothing defines, and those that something else has.


def undefined_names(
    experiment: Experiment, unsure: Collection[str] = (), wrong: Collection[KeyPath] = ()
) -> Iterator[Problem]:
    """Names that nothing defines, of every key that is marked by :class:`Refers`; without names that are ``unsure``,
    and without what keys at ``wrong`` would define."""
    matrix, orders = experiment.matrix, experiment.reveal_orders
    seeds = {seed for given in (matrix.seeds, *matrix.seeds_of.values()) for seed in given}
    definitions: dict[str, Collection[str | int]] = {
        "backbones": experiment.backbones,
        "directions": experiment.directions,
        "sources": experiment.sources,
        "studies": experiment.studies,
        "length_methods": [name for name, block in experiment.length_methods if block is not None],
        "reveal_orders": [*KNOWN, *orders],
        "scoring": _metrics(experiment),
        "matrix.backbones": matrix.backbones,
        "matrix.orders": matrix.orders,
        "matrix.steps": matrix.steps,
        "matrix.seeds": sorted(seeds),
    }
    for path, mark, name in _references(experiment):
        if path[0] == "studies" and path[1] not in experiment.tables.studies:
            continue
        if name in unsure or any(tuple(mark.to.split("."))[: len(key)] == key for key in wrong):
            continue
        if name not in definitions[mark.to] and name not in mark.also:
            yield path, unknown(name, f"{name!r} is not defined", definitions[mark.to], f"`{mark.to}` has")
        elif mark.to == "reveal_orders" and name not in orders:
            needed = [key for key, field in KNOWN[str(name)].model_fields.items() if field.is_required()]
            if needed:
                yield path, f"{name} needs {', '.join(needed)}; name a block of `reveal_orders` that has its settings"


def _references(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Refers, str | int]]:
    """Every name in a section, or in what holds sections, that another key defines: its key, the mark, the name."""
    if isinstance(value, BaseModel):
        for key, below in value:
            field = type(value).model_fields.get(key)
            for mark in field.metadata if field else ():
                if not isinstance(mark, Refers) or (mark.only_with and getattr(value, mark.only_with) in ([], False)):
                    continue
                yield from ((at, mark, name) for at, name in _names(below, (*path, key), mark.keys))
            yield from _references(below, (*path, key))
    elif isinstance(value, list | dict):
        entries: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        for entry, below in entries:
            yield from _references(below, (*path, entry))


def _names(value: Any, path: KeyPath, keys: bool) -> Iterator[tuple[KeyPath, str | int]]:
    """The names that a key has: one, a list of them, either by direction, or the keys of its block, if it is one."""
    if keys:
        yield from (((*path, name), name) for name in (value if isinstance(value, dict) else ()))
    elif isinstance(value, dict):
        yield from ((at, name) for key, below in value.items() for at, name in _names(below, (*path, key), keys))
    elif value is not None:
        yield from ((path, name) for name in (value if isinstance(value, list) else [value]))


def _metrics(experiment: Experiment) -> list[str]:
    return [*_own_metrics(experiment), *experiment.scoring.metrics]


def _own_metrics(experiment: Experiment) -> list[str]:
    comet = experiment.scoring.comet
    return [*([comet.key] if comet else []), "bleu", "chrf"]


def _taken(experiment: Experiment) -> Iterator[Problem]:
    """Names that something else has."""
    if DEV in experiment.sources:
        yield ("sources", DEV), "is the name of the development pairs; give the source another one"
    for name in experiment.studies:
        if name in (*SETS, *RUN_FOLDERS):
            yield ("studies", name), "is the name of a folder of every run; give the study another one"
    for name, block in experiment.reveal_orders.items():
        if name in KNOWN and block.order != name:
            yield ("reveal_orders", name), f"an order of ours has the name {name!r}; give the block another one"
    for name in experiment.scoring.metrics:
        if name in (*_own_metrics(experiment), *METRIC_FILES):
            yield ("scoring", "metrics", name), "this name is taken; give the metric another one"


def _compared(experiment: Experiment) -> Iterator[Problem]:
    """Methods that the tables compare and the matrix does not have, and directions without ratios."""
    matrix = experiment.matrix
    if missing := [name for name in COMPARED if name not in matrix.methods]:
        yield ("matrix", "methods"), f"the tables compare oracle, ratio and ev; add {', '.join(missing)}"
    for method in matrix.methods:
        ratios = getattr(getattr(experiment.length_methods, method, None), "ratios", None)
        if isinstance(ratios, dict):
            for direction in (name for name in matrix.directions if name not in ratios):
                yield ("matrix", "directions"), f"`length_methods.{method}.ratios` has no {direction}; add it there"


# --- What cannot run.


def _families(experiment: Experiment) -> Iterator[Problem]:
    families = {name: find_family(name) for name in {section.family for section in experiment.backbones.values()}}
    for name, section in experiment.backbones.items():
        family = families[section.family]
        if section.hub and (owner := _owner(section.hub.repository)) not in (None, family.name):
            yield ("backbones", name, "hub", "repository"), f"is of family {owner}, not {family.name}"
        if section.chat and family.chat is None:
            yield ("backbones", name, "chat"), f"the family {family.name} has no chat template; remove this key"
        if section.adapter_of and (problem := _not_shared(section, experiment.backbones[section.adapter_of])):
            yield ("backbones", name, "adapter_of"), problem
        if section.attention == PREFIX and section.zero_shot:
            yield ("backbones", name, "attention"), "the bare checkpoint was trained without it; remove this key"
        if section.attention == PREFIX and (own := section.decoding.prompt_cache) and own.refresh != 1:
            problem = "is approximate, and attention prefix computes the prompt once and exactly; set {refresh: 1} here"
            yield ("backbones", name, "decoding", "prompt_cache"), problem
        if family.causal:
            yield from _causal(experiment, name)
        elif name in experiment.autoregressive.backbones:
            yield ("autoregressive", "backbones"), f"{name!r} is of family {family.name}, not an autoregressive one"


def _not_shared(section: BackboneSection, other: BackboneSection) -> str | None:
    """Why a backbone cannot have the adapters of the ``other`` one, which it names."""
    if other.adapter_of or other.zero_shot or section.zero_shot:
        return "has no adapters of its own; name a backbone that is trained"
    if any(getattr(section, key) != getattr(other, key) for key in ("hub", "folder", "pretrained", "pretraining")):
        return "has another checkpoint; name a variant of the same one"
    if section.attention != other.attention:
        return f"is trained with attention {other.attention}; remove this key, or `attention`"
    if (section.training, section.eos_padding) != (other.training, other.eos_padding):
        return "is trained otherwise; remove this key, or `training` and `eos_padding`"
    return None


def _owner(repository: str) -> str | None:
    """Which of our families knows a repository."""
    return next(
        (name for name, family in FAMILIES.items() if repository in {one.repository for one in family.releases}), None
    )


def _causal(experiment: Experiment, name: str) -> Iterator[Problem]:
    section = experiment.backbones[name]
    for block in ("matrix", "instruct"):
        if name in getattr(experiment, block).backbones:
            yield (block, "backbones"), f"{name!r} is autoregressive; name it under `autoregressive.backbones`"
    if section.shifted is False:
        yield ("backbones", name, "shifted"), "an autoregressive family predicts the next token; remove this key"
    if section.attention == PREFIX:
        yield ("backbones", name, "attention"), "an autoregressive family attends to earlier tokens; remove this key"
    if section.eos_padding is not None:
        yield ("backbones", name, "eos_padding"), "an autoregressive family is trained on one EOS; remove this key"
    if section.zero_shot:
        yield ("backbones", name, "zero_shot"), "the autoregressive systems are trained on the same pairs; remove it"


def _methods(experiment: Experiment) -> Iterator[Problem]:
    """Length methods that take canvases which nobody chooses, and a user's own ones that cannot be made."""
    reassigned, decoded = reassigned_methods(experiment), methods(experiment)
    for method, directions in decoded.items():
        block = getattr(experiment.length_methods, method)
        if method in reassigned and (block.of in reassigned or block.of not in decoded):
            yield ("length_methods", method, "of"), "chooses no canvases of the matrix; name a method that does"
        elif ":" in block.method:
            yield from ((("length_methods", method), problem) for problem in _refused(experiment, method, directions))


def _refused(experiment: Experiment, method: str, directions: Sequence[str]) -> Iterator[str]:
    """Why a method cannot be made, once for all directions that have the same reason."""
    reasons: dict[str, list[str]] = {}
    for direction in directions:
        if reason := refusal(make_method, method, method_settings(experiment, method, direction)):
            reasons.setdefault(reason, []).append(direction)
    for reason, concerned in reasons.items():
        yield reason if len(concerned) == len(directions) else f"for {', '.join(concerned)}: {reason}"


def _adapters(experiment: Experiment) -> Iterator[Problem]:
    """Runs without a given adapter where nothing is to be trained."""
    if experiment.adapters == "trained":
        return
    missing: dict[tuple[str, str], dict[str, None]] = {}
    for run in (adapter_run(experiment, cell.run) for cell in all_cells(experiment)):
        given = experiment.released.get(run.backbone, {}).get(run.direction, {})
        if (run.pool or run.seed not in given) and not experiment.backbones[run.backbone].zero_shot:
            missing.setdefault((run.backbone, run.direction), {})[run.name.removeprefix("seed")] = None
    for key, seeds in missing.items():
        yield (
            ("released", *key),
            f"no adapter for seed {', '.join(seeds)}; give it, narrow `matrix` or `tables.studies`, or empty "
            "`autoregressive.backbones` or `instruct.backbones`",
        )


def _tokenizers(experiment: Experiment) -> Iterator[Problem]:
    """Tokenizers of BLEU that do not fit a target language, or that this machine does not have."""
    for backbone, direction in dict.fromkeys((cell.run.backbone, cell.run.direction) for cell in all_cells(experiment)):
        own = experiment.backbones[backbone].bleu
        for name, bleu in bleus_of(experiment.scoring, direction, own).items():
            if problem := refusal(bleu.require, direction.split("-")[1]):
                block = ("metrics", name) if name != "bleu" else (name,)
                key = ("backbones", backbone, "bleu") if own and name == "bleu" else ("scoring", *block)
                yield (*key, "tokenize"), f"{direction}: {problem}"


def _unpaired(experiment: Experiment) -> Iterator[Problem]:
    """Autoregressive systems without a seed in common with the backbone that they are compared with, run by run."""
    main = {run.seed for run in runs(experiment, [experiment.tables.backbone])}
    for name in experiment.autoregressive.backbones:
        if not main & {run.seed for run in runs(experiment, [name])}:
            message = f"no seed in common with {experiment.tables.backbone}, which it is compared with run by run"
            yield ("matrix", "seeds_of", name), message


def _studies(experiment: Experiment) -> Iterator[Problem]:
    """What the studies of ``tables.studies`` cannot compare. A study's report knows what else it needs."""
    for name in experiment.tables.studies:
        yield from ((("studies", name), problem) for problem in undefined(experiment, name))


def undefined(experiment: Experiment, name: str) -> list[str]:
    """What a study names that is not there for it: a masked backbone, a pool of a direction, ratios of a method."""
    study = experiment.studies[name]
    listed = study.backbones if isinstance(study.backbones, list) else []
    causal = [one for one in listed if find_family(experiment.backbones[one].family).causal]
    problems = [f"{one!r} is autoregressive; studies compare masked backbones" for one in causal]
    problems += _pools(experiment, study)
    for cell in study_cells(experiment, name) if not problems else []:
        ratios = getattr(getattr(experiment.length_methods, cell.method), "ratios", None)
        if isinstance(ratios, dict) and (direction := cell.run.direction) not in ratios:
            method = f"method {cell.method!r} has no ratios for {direction}"
            problems.append(f"{method}; add that key, or list its directions")
    return list(dict.fromkeys(problems))


def _pools(experiment: Experiment, study: Study) -> Iterator[str]:
    """Pools that a direction does not have, or that are larger than what they are taken from."""
    for direction in matrix.study_directions(experiment, study):
        pools, most = experiment.directions[direction].pools, experiment.corpus_of(direction).train
        for name in study.pools or ():
            if name not in pools:
                yield unknown(name, f"pool {name!r} is not defined", pools, f"`directions.{direction}.pools` has")
            elif pools[name] > most:
                yield f"pool {name!r} of {direction} has {pools[name]} pairs, but `corpus.train` is {most}; raise that"


def _sources(experiment: Experiment) -> Iterator[Problem]:
    """Sources that do not have what they are named for."""
    for direction in matrix.directions(experiment):
        name = experiment.directions[direction].train
        if problem := experiment.sources[name].refused(direction, "train", "dev"):
            yield ("sources", name), problem
    for direction, name in dict.fromkeys((cell.run.direction, cell.testset) for cell in all_cells(experiment)):
        if name != DEV:
            yield from _testset(experiment, direction, name)
    decoded = dict.fromkeys((cell.testset, cell.order) for cell in all_cells(experiment) if cell.order)
    anchored = {order for order in {order for _, order in decoded} if needs_anchors(experiment, order)}
    for name, order in decoded:
        if order in anchored and not (name in experiment.sources and experiment.sources[name].has_anchors):
            yield ("sources", name, "anchors"), f"the reveal order {order!r} needs a gold alignment; give its file"


def _testset(experiment: Experiment, direction: str, name: str) -> Iterator[Problem]:
    source = experiment.sources[name]
    if problem := source.refused(direction, "test"):
        yield ("sources", name), problem
    if source.challenge and (problem := refused(direction, experiment.corpus.challenge)):
        yield ("sources", name, "challenge"), f"{problem}; name another direction, or see `corpus.challenge`"
