"""What is wrong with a config whose blocks are all right: names that nothing defines, and what cannot run.

A key says at its field which other key defines its names. Without these checks jobs would fail after hours of training.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from entropy_valley.decoding.requests import KNOWN
from entropy_valley.errors import refusal, unknown
from entropy_valley.experiment.config import matrix
from entropy_valley.experiment.config.matrix import COMPARED, DEV, SETS, all_cells, methods, runs
from entropy_valley.experiment.config.methods import method_settings, reassigned_methods
from entropy_valley.experiment.config.paths import adapter_run
from entropy_valley.experiment.config.schema import BackboneSection, Experiment, metrics_of, needs_anchors
from entropy_valley.lengths import make_method
from entropy_valley.model.families import find_family
from entropy_valley.scoring.metrics import Bleu
from entropy_valley.settings import Refers

# Keys of the files of a set, columns of the frames of results, and names of folders: no metric can have these.
METRIC_FILES = {
    *("comet", "id", "digests", "sentences", "signatures", "copies", "set", "code", "decoder", "shifted"),
    *("backbone", "direction", "pool", "seed", "testset", "method", "order", "steps", "metric", "value"),
    *("data_digest", "backbone_digest", "adapter_digest", "within_steps", "length_mae", "concentration"),
    *("hypothesis", "source", "target", "source_tokens", "target_tokens", "length", "tokens", "logprob", "canvas"),
    *("calls", "slots", "passes", "run_tokens", "head_rows"),
}
RUN_FOLDERS = ("adapter", "latency")  # beside the sets of a run

OF_CHECKPOINT = ("family", "hub", "folder", "pretraining", "pretrained")  # keys of a backbone

OF_TRAINING = ("attention", "training", "eos_padding")

KeyPath = tuple[str | int, ...]
Problem = tuple[KeyPath, str]  # the path of a key, and what would be right
Further = Callable[[Experiment], list[Problem]]


def find_problems(experiment: Experiment, further: Further) -> list[Problem]:
    """What is wrong: the path of each key, and what would be right; with what ``further`` finds.

    The later checks need what the earlier ones have found right.
    """
    return (
        [*_undefined_names(experiment), *_taken(experiment), *_compared(experiment)]
        or [*_backbones(experiment), *_studies(experiment), *further(experiment)]
        or [*_ratios(experiment), *_sources(experiment), *_adapters(experiment), *_unpaired(experiment)]
        or [*_methods(experiment), *_tokenizers(experiment)]
    )


# --- Names: those that nothing defines, and those that something else has.


def _undefined_names(experiment: Experiment) -> Iterator[Problem]:
    """Names that nothing defines, of every key that is marked by :class:`Refers`."""
    matrix, orders = experiment.matrix, experiment.reveal_orders
    seeds = {seed for given in (matrix.seeds, *matrix.seeds_of.values()) for seed in given}
    definitions: dict[str, Collection[str | int]] = {
        "backbones": experiment.backbones,
        "directions": experiment.directions,
        "sources": experiment.sources,
        "studies": experiment.studies,
        "length_methods": [name for name, block in experiment.length_methods if block is not None],
        "reveal_orders": [*KNOWN, *orders],
        "scoring": [metric.name for metric in metrics_of(experiment.scoring)],
        "matrix.backbones": matrix.backbones,
        "matrix.orders": matrix.orders,
        "matrix.steps": matrix.steps,
        "matrix.seeds": sorted(seeds),
    }
    for path, mark, name in _references(experiment):
        if path[0] == "studies" and path[1] not in experiment.tables.studies:
            continue
        if name not in definitions[mark.to] and name not in mark.also:
            yield path, unknown(name, f"{name!r} is not defined", definitions[mark.to], f"`{mark.to}` has")
        elif mark.to == "reveal_orders" and name not in orders:
            needed = [key for key, field in KNOWN[str(name)].model_fields.items() if field.is_required()]
            if needed:
                yield path, f"{name} needs {', '.join(needed)}; name a block of `reveal_orders` that has its settings"


def _references(
    value: Any, path: KeyPath = (), marks: Sequence[Refers] = ()
) -> Iterator[tuple[KeyPath, Refers, str | int]]:
    """Every name in a section, or in what holds sections, that another key defines: its key, the mark, the name.
    ``marks`` are those of the key that has the value."""
    if isinstance(value, BaseModel):
        for key, below in value:
            field = type(value).model_fields.get(key)
            own = []
            for mark in field.metadata if field else ():
                if isinstance(mark, Refers) and not (mark.only_with and getattr(value, mark.only_with) in ([], False)):
                    own.append(mark)
            yield from _references(below, (*path, key), own)
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from (((*path, key), mark, key) for mark in marks if mark.keys)
            yield from _references(below, (*path, key), [mark for mark in marks if not mark.keys])
    elif isinstance(value, list):
        for place, below in enumerate(value):  # of a name, the list has the key
            yield from _references(below, (*path, place) if isinstance(below, BaseModel) else path, marks)
    elif value is not None:
        yield from ((path, mark, value) for mark in marks if not mark.keys)


def _taken(experiment: Experiment) -> Iterator[Problem]:
    """Names that something else has."""
    if DEV in experiment.sources:
        yield ("sources", DEV), "is the name of the development pairs; give the source another one"
    for name in experiment.studies:
        if name in (*SETS, *RUN_FOLDERS):
            yield ("studies", name), "is the name of a folder of every run; give the study another one"
    metrics = [metric.name for metric in metrics_of(experiment.scoring)]
    for name in experiment.scoring.metrics:
        if metrics.count(name) > 1 or name in METRIC_FILES:
            yield ("scoring", "metrics", name), "this name is taken; give the metric another one"


def _compared(experiment: Experiment) -> Iterator[Problem]:
    """Methods that the tables compare and the matrix does not have."""
    if missing := [name for name in COMPARED if name not in experiment.matrix.methods]:
        yield ("matrix", "methods"), f"the tables compare oracle, ratio and ev; add {', '.join(missing)}"


# --- What cannot run.


def _backbones(experiment: Experiment) -> Iterator[Problem]:
    families = {name: find_family(name) for name in {section.family for section in experiment.backbones.values()}}
    stock_classes = {name for name, family in families.items() if family.is_stock}
    for name, section in experiment.backbones.items():
        family, given = families[section.family], section.hub or section.folder
        stock = section.family in stock_classes
        for wrong, keys, reason in (
            (given, ("pretraining", "pretrained"), "the checkpoint is that of `hub` or `folder`"),
            (not family.chat, ("chat",), f"the family {family.name} has no chat template"),
            (section.zero_shot, ("attention",), "the bare checkpoint was trained without it"),
            (stock, ("attention",), "a stock class has none"),
            (family.causal, ("shifted", "attention", "eos_padding", "zero_shot"), "an autoregressive family has none"),
        ):
            for key in keys:
                if wrong and getattr(section, key) != BackboneSection.model_fields[key].default:
                    yield ("backbones", name, key), f"{reason}; remove this key"
        if stock and not section.zero_shot:
            yield ("backbones", name, "zero_shot"), "a stock class is not fine-tuned here; set it to true"
        if stock and section.decoding.prompt_cache:
            yield ("backbones", name, "decoding", "prompt_cache"), "a stock class has none; remove this key"
        base = experiment.backbones[section.variant_of or name]
        for key in OF_CHECKPOINT:
            if getattr(section, key) != getattr(base, key):
                yield ("backbones", name, key), f"a variant has the checkpoint of {section.variant_of}; remove this key"
        if section.adapter_of and (problem := _not_shared(section, experiment.backbones[section.adapter_of])):
            yield ("backbones", name, "adapter_of"), problem
    for block in ("matrix", "instruct", "autoregressive"):
        for name in getattr(experiment, block).backbones:
            family = families[experiment.backbones[name].family]
            if family.causal and block != "autoregressive":
                yield (block, "backbones"), f"{name!r} is autoregressive; name it under `autoregressive.backbones`"
            if not family.causal and block == "autoregressive":
                yield (block, "backbones"), f"{name!r} is of family {family.name}, not an autoregressive one"


def _not_shared(section: BackboneSection, other: BackboneSection) -> str:
    """Why a backbone cannot have the adapters of the ``other`` one, which it names; empty if it can."""
    if other.adapter_of or other.zero_shot or section.zero_shot:
        return "has no adapters of its own; name a backbone that is trained"
    differing = [key for key in (*OF_CHECKPOINT, *OF_TRAINING) if getattr(section, key) != getattr(other, key)]
    return f"has other adapters, by `{'`, `'.join(differing)}`; remove this key, or those" if differing else ""


def _ratios(experiment: Experiment) -> Iterator[Problem]:
    """Directions in which a method has cells and no ratios."""
    for method, directions in methods(experiment).items():
        ratios = getattr(getattr(experiment.length_methods, method), "ratios", None)
        if isinstance(ratios, dict) and (missing := [name for name in directions if name not in ratios]):
            problem = f"has none for {', '.join(missing)}; add them, or list the directions of what compares {method}"
            yield ("length_methods", method, "ratios"), problem


def _methods(experiment: Experiment) -> Iterator[Problem]:
    """Length methods that take canvases which nobody chooses, and a user's own ones that cannot be made."""
    decoded = methods(experiment)
    reassigned = reassigned_methods(experiment)
    for method, directions in decoded.items():
        block = getattr(experiment.length_methods, method)
        if method in reassigned and (block.of in reassigned or block.of not in decoded):
            yield ("length_methods", method, "of"), "chooses no canvases of the matrix; name a method that does"
        if ":" in block.method:
            for direction in directions:
                if reason := refusal(make_method, method, method_settings(experiment, method, direction)):
                    yield ("length_methods", method), reason  # the same reason is told once


def _adapters(experiment: Experiment) -> Iterator[Problem]:
    """Runs without a given adapter where nothing is to be trained."""
    if experiment.adapters == "trained":
        return
    missing: dict[KeyPath, list[str]] = {}
    for run in dict.fromkeys(adapter_run(experiment, cell.run) for cell in all_cells(experiment)):
        given = experiment.released.get(run.backbone, {}).get(run.direction, {})
        if (run.pool or run.seed not in given) and not experiment.backbones[run.backbone].zero_shot:
            missing.setdefault(("released", run.backbone, run.direction), []).append(run.name)
    remedy = "give it, narrow `matrix` or `tables.studies`, or empty `autoregressive.backbones` or `instruct.backbones`"
    for path, names in missing.items():
        yield path, f"no adapter for {', '.join(names)}; {remedy}"


def _tokenizers(experiment: Experiment) -> Iterator[Problem]:
    """Tokenizers of BLEU that do not fit a target language, or that this machine does not have."""
    bleus: dict[KeyPath, Bleu] = {("scoring", "bleu"): experiment.scoring.bleu}
    for name, metric in experiment.scoring.metrics.items():
        if isinstance(metric, Bleu):
            bleus["scoring", "metrics", name] = metric
    for name in {cell.run.backbone for cell in all_cells(experiment)}:
        if bleu := experiment.backbones[name].bleu:
            bleus["backbones", name, "bleu"] = bleu
    for key, bleu in bleus.items():
        for direction in matrix.directions(experiment):
            if problem := bleu.of(direction).refused(direction.split("-")[1]):
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
        for problem in undefined(experiment, name):
            yield ("studies", name), problem


def undefined(experiment: Experiment, name: str) -> list[str]:
    """What a study names that is not there for it: a masked backbone, a pool of a direction that is as large."""
    study = experiment.studies[name]
    problems = []
    for backbone in study.backbones if isinstance(study.backbones, list) else ():
        if find_family(experiment.backbones[backbone].family).causal:
            problems.append(f"{backbone!r} is autoregressive; studies compare masked backbones")
    for direction in matrix.study_directions(experiment, study) if study.pools else ():
        pools, most = experiment.directions[direction].pools, experiment.corpus_of(direction).train
        for pool in study.pools or ():
            if pool not in pools:
                missing = unknown(pool, f"pool {pool!r} is not defined", pools, f"`directions.{direction}.pools` has")
                problems.append(missing)
            elif pools[pool] > most:
                size = f"has {pools[pool]} pairs, but `corpus.train` is {most}; raise that"
                problems.append(f"pool {pool!r} of {direction} {size}")
    return problems


def _sources(experiment: Experiment) -> Iterator[Problem]:
    """Sources that do not have what they are named for."""
    for direction in matrix.directions(experiment):
        name = experiment.directions[direction].train
        if problem := experiment.sources[name].refused(direction, "train", "dev"):
            yield ("sources", name), problem
    orders: dict[tuple[str, str], set[str]] = {}  # of each direction and test set
    for cell in all_cells(experiment):
        orders.setdefault((cell.run.direction, cell.testset), set()).add(cell.order)
    anchored = {order for order in set().union(*orders.values()) if order and needs_anchors(experiment, order)}
    for (direction, name), own in orders.items():
        source = experiment.sources.get(name)  # None: the development pairs
        if source and (problem := source.refused(direction, "test")):
            yield ("sources", name), problem
        for order in sorted(own & anchored):
            if not (source and source.spans(direction)):
                yield ("sources", name), f"the reveal order {order!r} needs a gold alignment, which it does not have"
