"""What is wrong with a config whose blocks are all right: names that nothing defines, and what cannot run.

Without these checks jobs would fail after hours of training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from entropy_valley.config import matrix
from entropy_valley.config.expand import KeyPath, Problem
from entropy_valley.config.matrix import COMPARED, DEV, SETS, Cell, all_cells, methods, runs, study_cells
from entropy_valley.config.methods import method_settings, needs_anchors, reassigned_methods
from entropy_valley.config.paths import adapter_run
from entropy_valley.config.schema import Experiment, Study
from entropy_valley.data.categories import refused
from entropy_valley.decoding.orders import KNOWN
from entropy_valley.errors import refusal, unknown
from entropy_valley.lengths import make_method
from entropy_valley.model.families import FAMILIES, find_family
from entropy_valley.model.prompt import PREFIX

METRIC_FILES = (
    "comet",
    "id",
    "digests",
    "sentences",
    "signatures",
)  # keys of the scores' files, names of their folders
RUN_FOLDERS = ("adapter", "latency")  # beside the sets of a run

Further = Callable[[Experiment], list[Problem]]


def nothing_further(experiment: Experiment) -> list[Problem]:
    return []


def wrong(experiment: Experiment, further: Further = nothing_further) -> list[Problem]:
    """What is wrong: the path of each key, and what would be right; with what ``further`` finds.

    The later checks need what the earlier ones have found right.
    """
    return (
        [*_names(experiment)]
        or [*_families(experiment), *_studies(experiment), *further(experiment)]
        or [*_methods(experiment), *_sources(experiment), *_adapters(experiment), *_unpaired(experiment)]
    )


def _names(experiment: Experiment) -> Iterator[Problem]:
    """Names that nothing defines, and names that something else has."""
    for path, names, holder, defined in _uses(experiment):
        for name in names:
            if name not in defined:
                yield path, unknown(name, f"{name!r} is not defined", defined, f"`{holder}` has")
    if DEV in experiment.sources:
        yield ("sources", DEV), "is the name of the development pairs; give the source another one"
    for name in experiment.studies:
        if name in (*SETS, *RUN_FOLDERS):
            yield ("studies", name), "is the name of a folder of every run; give the study another one"
    for name in experiment.reveal_orders:
        if name in KNOWN and experiment.reveal_orders[name].order != name:
            yield ("reveal_orders", name), f"an order of ours has the name {name!r}; give the block another one"
    for name in experiment.scoring.metrics:
        if name in (experiment.scoring.comet.key, "bleu", "chrf", *METRIC_FILES):
            yield ("scoring", "metrics", name), "this name is taken; give the metric another one"
    yield from ((("matrix", "orders"), problem) for problem in _orders(experiment, experiment.matrix.orders))
    if missing := [name for name in COMPARED if name not in experiment.matrix.methods]:
        yield ("matrix", "methods"), f"the tables compare oracle, ratio and ev; add {', '.join(missing)}"
    for method in experiment.matrix.methods:
        ratios = getattr(getattr(experiment.length_methods, method, None), "ratios", None)
        for direction in experiment.matrix.directions if isinstance(ratios, dict) else []:
            if direction not in ratios:
                yield ("matrix", "directions"), f"`length_methods.{method}.ratios` has no {direction}; add it there"


def _uses(experiment: Experiment) -> Iterator[tuple[KeyPath, Iterable[str | int], str, Iterable[str | int]]]:
    """Every key that names others: its path, the names, and the key that holds what they may be, with these."""
    matrix, instruct, human = experiment.matrix, experiment.instruct, experiment.human_evaluation
    backbones, directions, sources = experiment.backbones, experiment.directions, experiment.sources
    defined = [name for name, block in experiment.length_methods if block is not None]
    for key, names in {
        "matrix": matrix.backbones,
        "autoregressive": experiment.autoregressive.backbones,
        "instruct": instruct.backbones,
        "valley": experiment.valley.backbones or [],
        "pages": experiment.pages.backbones or [],
    }.items():
        yield (key, "backbones"), names, "backbones", backbones
    yield from ((("matrix", "seeds_of", name), [name], "backbones", backbones) for name in matrix.seeds_of)
    if experiment.valley.backbones != []:
        seeds = {seed for given in (matrix.seeds, *matrix.seeds_of.values()) for seed in given}
        yield ("valley", "seeds"), experiment.valley.seeds or [], "matrix.seeds", sorted(seeds)
    yield ("matrix", "directions"), matrix.directions, "directions", directions
    yield ("matrix", "methods"), matrix.methods, "length_methods", defined
    yield ("pages", "methods"), experiment.pages.methods or [], "length_methods", defined
    for name, section in directions.items():
        yield ("directions", name, "train"), [section.train], "sources", sources
        yield ("directions", name, "tests"), section.tests, "sources", sources
    for name, section in backbones.items():
        prompt_of = [section.decoding_prompt_of] if section.decoding_prompt_of else []
        yield ("backbones", name, "decoding_prompt_of"), prompt_of, "directions", directions
    if instruct.backbones:
        yield ("instruct", "direction"), [instruct.direction], "directions", directions
        yield ("instruct", "testset"), [instruct.testset], "sources", sources
    for key, shown in (("first", human.first), ("second", human.second)):
        yield ("human_evaluation", key, "method"), [shown.method], "length_methods", defined
        yield ("human_evaluation", key, "backbone"), [shown.backbone] if shown.backbone else [], "backbones", backbones
    yield ("human_evaluation", "testset"), [human.testset] if human.testset else [], "sources", sources
    tables = experiment.tables
    yield ("tables", "backbone"), [tables.backbone], "matrix.backbones", matrix.backbones
    yield ("tables", "order"), [tables.order], "matrix.orders", matrix.orders
    yield ("tables", "steps"), [tables.steps], "matrix.steps", matrix.steps
    yield ("tables", "studies"), tables.studies, "studies", experiment.studies
    for name in tables.studies:
        study = experiment.studies.get(name)
        if study and study.beyond_matrix:
            yield ("studies", name, "directions"), study.directions or [], "directions", directions
    metrics = [experiment.scoring.comet.key, "bleu", "chrf", *experiment.scoring.metrics]
    yield ("tables", "metrics"), tables.metrics or [], "scoring", metrics


def _orders(experiment: Experiment, names: Iterable[str]) -> Iterator[str]:
    """Why names are no reveal orders."""
    for name in names:
        if name not in KNOWN and name not in experiment.reveal_orders:
            yield unknown(name, f"{name!r} is no reveal order", [*KNOWN, *experiment.reveal_orders], most=40)
        elif name not in experiment.reveal_orders:
            needed = [key for key, field in KNOWN[name].model_fields.items() if field.is_required()]
            if needed:
                yield f"{name} needs {', '.join(needed)}; name a block of `reveal_orders` that has its settings"


def _families(experiment: Experiment) -> Iterator[Problem]:
    for name, section in experiment.backbones.items():
        family = find_family(section.family)
        if section.hub and (owner := _owner(section.hub.repository)) not in (None, family.name):
            yield ("backbones", name, "hub", "repository"), f"is of family {owner}, not {family.name}"
        if section.chat and family.chat is None:
            yield ("backbones", name, "chat"), f"the family {family.name} has no chat template; remove this key"
        if section.adapter_of and (problem := _not_shared(experiment, name)):
            yield ("backbones", name, "adapter_of"), problem
        if section.attention == PREFIX and section.zero_shot:
            yield ("backbones", name, "attention"), "the bare checkpoint was trained without it; remove this key"
        if section.attention == PREFIX and (own := section.decoding.prompt_cache) and own.refresh != 1:
            problem = "is approximate, and attention prefix computes the prompt once and exactly; set {refresh: 1} here"
            yield ("backbones", name, "decoding", "prompt_cache"), problem
        if family.causal:
            yield from _causal(experiment, name)
        elif name in experiment.autoregressive.backbones:
            yield ("autoregressive", "backbones"), f"{name!r} is of family {family.name}, no autoregressive one"


def _not_shared(experiment: Experiment, name: str) -> str | None:
    """Why a backbone cannot have the adapters of the one that it names."""
    section, other = experiment.backbones[name], experiment.backbones.get(experiment.backbones[name].adapter_of)
    if other is None or other.adapter_of or other.zero_shot or section.zero_shot:
        return "has no adapters of its own; name a backbone that is trained"
    if (section.hub, section.own_folder, section.pretraining) != (other.hub, other.own_folder, other.pretraining):
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
    dealt, decoded = reassigned_methods(experiment), methods(experiment)
    for method, directions in decoded.items():
        block = getattr(experiment.length_methods, method)
        if method in dealt and (block.of in dealt or block.of not in decoded):
            yield ("length_methods", method, "of"), "chooses no canvases of the matrix; name a method that does"
        elif ":" in (block.method or ""):
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


def _unpaired(experiment: Experiment) -> Iterator[Problem]:
    """Autoregressive systems without a seed in common with the backbone that they are compared with, run by run."""
    main = {run.seed for run in runs(experiment, [experiment.tables.backbone])}
    for name in experiment.autoregressive.backbones:
        if not main & {run.seed for run in runs(experiment, [name])}:
            message = f"no seed in common with {experiment.tables.backbone}, which it is compared with run by run"
            yield ("matrix", "seeds_of", name), message


def _studies(experiment: Experiment) -> Iterator[Problem]:
    """Names in the studies of ``tables.studies`` that nothing defines. A study's report knows what else it needs."""
    for name in experiment.tables.studies:
        yield from ((("studies", name), problem) for problem in dict.fromkeys(undefined(experiment, name)))


def _sources(experiment: Experiment) -> Iterator[Problem]:
    """Sources that do not have what they are named for."""
    for direction in matrix.directions(experiment):
        name = experiment.directions[direction].train
        if problem := experiment.sources[name].refused(direction, "train", "dev"):
            yield ("sources", name), problem
    for direction, name in dict.fromkeys((cell.run.direction, cell.testset) for cell in all_cells(experiment)):
        if name != DEV:
            yield from _testset(experiment, direction, name)
    for name, order in dict.fromkeys((cell.testset, cell.order) for cell in all_cells(experiment) if cell.order):
        if needs_anchors(experiment, order) and not (
            name in experiment.sources and experiment.sources[name].has_anchors
        ):
            yield ("sources", name, "anchors"), f"the reveal order {order!r} needs a gold alignment; give its file"


def _testset(experiment: Experiment, direction: str, name: str) -> Iterator[Problem]:
    source = experiment.sources[name]
    if problem := source.refused(direction, "test"):
        yield ("sources", name), problem
    if source.challenge and (problem := refused(direction, experiment.corpus.challenge)):
        yield ("sources", name, "challenge"), f"{problem}; name another direction, or see `corpus.challenge`"


def undefined(experiment: Experiment, name: str) -> list[str]:
    """What a study names and nothing defines."""
    study = experiment.studies[name]
    problems = [*_backbones(experiment, study), *_pools(experiment, study)]
    if not hasattr(experiment.length_methods, study.against):
        problems.append(f"against: {_no_method(experiment, study.against)}")
    if problems:  # then it has no cells that could be looked at
        return problems
    return [problem for cell in study_cells(experiment, name) for problem in _undefined(experiment, cell)]


def _no_method(experiment: Experiment, name: str) -> str:
    defined = [one for one, block in experiment.length_methods if block]
    return unknown(name, f"method {name!r} is not defined", defined, "`length_methods` has")


def _backbones(experiment: Experiment, study: Study) -> Iterator[str]:
    for name in study.backbones if isinstance(study.backbones, list) else []:
        if name not in experiment.backbones:
            yield unknown(name, f"{name!r} is not defined", experiment.backbones, "`backbones` has")
        elif find_family(experiment.backbones[name].family).causal:
            yield f"{name!r} is autoregressive; studies compare masked backbones"


def _pools(experiment: Experiment, study: Study) -> Iterator[str]:
    """Pools that a direction does not have, or that are larger than what they are taken from."""
    for direction in matrix.study_directions(experiment, study) if study.pools else []:
        pools, most = experiment.directions[direction].pools, experiment.corpus_of(direction).train
        for name in study.pools:
            if name not in pools:
                yield unknown(name, f"pool {name!r} is not defined", pools, f"`directions.{direction}.pools` has")
            elif pools[name] > most:
                yield f"pool {name!r} of {direction} has {pools[name]} pairs, but `corpus.train` is {most}; raise that"


def _undefined(experiment: Experiment, cell: Cell) -> Iterator[str]:
    """What a study's cell names and nothing defines."""
    block = getattr(experiment.length_methods, cell.method, None)
    if block is None:
        yield _no_method(experiment, cell.method)
    elif isinstance(ratios := getattr(block, "ratios", None), dict) and cell.run.direction not in ratios:
        yield f"method {cell.method!r} has no ratios for {cell.run.direction}; add that key, or list its directions"
    if cell.testset not in (*experiment.sources, DEV):
        yield unknown(cell.testset, f"test set {cell.testset!r} is not defined", experiment.sources, "`sources` has")
    yield from _orders(experiment, [cell.order])
