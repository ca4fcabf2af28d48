"""What a config that is well formed asks for and cannot have; its jobs would only say so after hours of training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from entropy_valley.config.checks import Problem
from entropy_valley.config.orders import order_problems
from entropy_valley.config.schema import Experiment
from entropy_valley.errors import InputError

if TYPE_CHECKING:
    from entropy_valley.matrix import Cell


def infeasible(experiment: Experiment) -> list[Problem]:
    """Every such problem: the path of the key, and what would be right."""
    problems = [*_families(experiment)]
    if not problems:
        problems = [*_studies(experiment)]
    if not problems:
        problems = [*_methods(experiment), *_adapters(experiment), *_unpaired(experiment)]
    return problems


def _families(experiment: Experiment) -> Iterator[Problem]:
    from entropy_valley.backbone.families import find_family

    for name, section in experiment.backbones.items():
        try:
            family = find_family(section.family)
        except InputError as error:
            yield ("backbones", name, "family"), f"{error.problem}. {error.remedy.rstrip('.')}"
            continue
        if section.hub and (owner := _owner(section.hub.repository)) not in (None, family.name):
            yield ("backbones", name, "hub", "repository"), f"is of family {owner}, not {family.name}"
        if section.chat and family.chat is None:
            yield ("backbones", name, "chat"), f"the family {family.name} has no chat template; remove this key"
        if family.causal:
            yield from _causal(experiment, name)
        elif name in experiment.autoregressive.backbones:
            yield ("autoregressive", "backbones"), f"{name!r} is of family {family.name}, no autoregressive one"


def _owner(repository: str) -> str | None:
    """Which of our families knows a repository."""
    from entropy_valley.backbone.families import FAMILIES

    return next((name for name, family in FAMILIES.items() if family.release(repository)), None)


def _causal(experiment: Experiment, name: str) -> Iterator[Problem]:
    section = experiment.backbones[name]
    for block in ("matrix", "instruct"):
        if name in getattr(experiment, block).backbones:
            yield (block, "backbones"), f"{name!r} is autoregressive; name it under `autoregressive.backbones`"
    if section.shifted is False:
        yield ("backbones", name, "shifted"), "an autoregressive family predicts the next token; remove this key"
    if section.eos_padding is not None:
        yield ("backbones", name, "eos_padding"), "an autoregressive family is trained on one EOS; remove this key"
    if section.zero_shot:
        yield ("backbones", name, "zero_shot"), "the autoregressive systems are trained on the same pairs; remove it"


def _studies(experiment: Experiment) -> Iterator[Problem]:
    """Studies that name what nothing defines."""
    for name in experiment.tables.studies:
        if name in experiment.studies:
            for problem in dict.fromkeys(_of_study(experiment, name)):
                yield ("studies", name), problem
        else:
            there = ", ".join(experiment.studies) or "none"
            yield ("tables", "studies"), f"{name!r} is not defined; `studies` has {there}"


def _of_study(experiment: Experiment, name: str) -> Iterator[str]:
    from entropy_valley.matrix import study_cells

    named = experiment.studies[name].backbones
    backbones = [one for one in named if one not in experiment.backbones] if isinstance(named, list) else []
    if backbones:
        yield f"{backbones[0]!r} is not defined under `backbones`"
        return
    cells = study_cells(experiment, name)
    for cell in cells:
        yield from _undefined(experiment, cell)
    if cells and (layout := experiment.studies[name].layout) in ("orders", "categories"):
        yield from _of_orders(experiment, layout, cells)


def _of_orders(experiment: Experiment, layout: str, cells: Sequence[Cell]) -> Iterator[str]:
    """What the layouts that compare orders under Oracle's lengths miss."""
    from entropy_valley.corpus.categories import LANGUAGES

    main, orders = experiment.tables.order, {cell.order for cell in cells if cell.method == "oracle"}
    if main not in orders:
        yield f"the layout {layout} needs the method oracle and the order {main}; add both"
    elif layout == "categories" and len(orders) != 2:
        yield f"the layout categories compares {main} with one other order; name two"
    for language in sorted({cell.run.direction.split("-")[0] for cell in cells} - set(LANGUAGES)):
        if layout == "categories":
            yield f"no categories for sources in {language}; list directions from {', '.join(LANGUAGES)}"


def _undefined(experiment: Experiment, cell: Cell) -> Iterator[str]:
    """What a study's cell names and nothing defines."""
    from entropy_valley.matrix import DEV

    block = getattr(experiment.length_methods, cell.method, None)
    if block is None:
        yield f"method {cell.method!r} is not defined under `length_methods`"
    elif isinstance(ratios := getattr(block, "ratios", None), dict) and cell.run.direction not in ratios:
        yield f"method {cell.method!r} has no ratios for {cell.run.direction}; add that key, or list its directions"
    if cell.testset not in (*experiment.sources, DEV):
        yield f"test set {cell.testset!r} is not defined under `sources`"
    blocks = {name: dict(block) for name, block in experiment.reveal_orders.items()}
    yield from (message for _, message in order_problems(blocks, [cell.order]))


def _methods(experiment: Experiment) -> Iterator[Problem]:
    """Selectors that cannot be made."""
    from entropy_valley.canvas.selectors import make_selector
    from entropy_valley.matrix import methods
    from entropy_valley.specs.jobs import reassigned_methods, selector_settings

    dealt, found = reassigned_methods(experiment), methods(experiment)
    for method, directions in found.items():
        if method in dealt:
            of = getattr(experiment.length_methods, method).of
            if of in dealt or of not in found:
                yield ("length_methods", method, "of"), "chooses no canvases of the matrix; name a method that does"
            continue
        for direction in directions:
            try:
                make_selector(method, selector_settings(experiment, method, direction))
            except InputError as error:
                yield ("length_methods", method), f"for {direction}: {error.problem}. {error.remedy.rstrip('.')}"


def _adapters(experiment: Experiment) -> Iterator[Problem]:
    """Runs without a given adapter where nothing is to be trained."""
    from entropy_valley.matrix import all_cells

    if experiment.adapters == "trained":
        return
    missing: dict[tuple[str, str], dict[int, None]] = {}
    for run in (cell.run for cell in all_cells(experiment)):
        given = experiment.released.get(run.backbone, {}).get(run.direction, {})
        if run.seed not in given and not experiment.backbones[run.backbone].zero_shot:
            missing.setdefault((run.backbone, run.direction), {})[run.seed] = None
    for key, seeds in missing.items():
        yield (
            ("released", *key),
            f"no adapter for seed {', '.join(map(str, seeds))}; give it, narrow `matrix`, or empty "
            "`autoregressive.backbones` or `instruct.backbones`",
        )


def _unpaired(experiment: Experiment) -> Iterator[Problem]:
    """Autoregressive systems without a seed in common with the backbone that they are compared with, run by run."""
    from entropy_valley.matrix import runs

    main = {run.seed for run in runs(experiment, [experiment.tables.backbone])}
    for name in experiment.autoregressive.backbones:
        if not main & {run.seed for run in runs(experiment, [name])}:
            message = f"no seed in common with {experiment.tables.backbone}, which it is compared with run by run"
            yield ("matrix", "seeds_of", name), message
