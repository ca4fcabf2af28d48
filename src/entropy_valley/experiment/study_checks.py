"""What studies ask for and cannot have: names that nothing defines, layouts that lack what they compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from entropy_valley.experiment.checks import Problem
from entropy_valley.experiment.orders import order_problems
from entropy_valley.experiment.schema import Experiment
from entropy_valley.experiment.studies import Study

if TYPE_CHECKING:
    from entropy_valley.experiment.matrix import Cell

# Files that other rules make: a study's table, or figure, cannot have their names.
TABLES = ("main", "crossbb", "ar_reference", "dream_instruct", "significance")
FIGURES = ("hero", "crossbb", "entropy_valley", "selector_checks")


def study_problems(experiment: Experiment) -> Iterator[Problem]:
    """Every such problem of the studies that ``tables.studies`` lists."""
    for name in experiment.tables.studies:
        if name in experiment.studies:
            for problem in dict.fromkeys(_of_study(experiment, name)):
                yield ("studies", name), problem
        else:
            there = ", ".join(experiment.studies) or "none"
            yield ("tables", "studies"), f"{name!r} is not defined; `studies` has {there}"


def _of_study(experiment: Experiment, name: str) -> Iterator[str]:
    from entropy_valley.experiment.matrix import study_cells

    study = experiment.studies[name]
    if name in TABLES or (_is_drawn(study) and name in FIGURES):
        yield "is the name of another table or figure; rename the study"
    backbones = [*_backbones(experiment, study)]
    if backbones:
        yield from backbones
        return
    cells = study_cells(experiment, name)
    undefined = [problem for cell in cells for problem in _undefined(experiment, cell)]
    if undefined or not cells:
        yield from undefined
    else:
        yield from _of_layout(experiment, study, cells)


def _is_drawn(study: Study) -> bool:
    return study.layout == "budgets" or (study.layout == "systems" and study.figure)


def _backbones(experiment: Experiment, study: Study) -> Iterator[str]:
    from entropy_valley.backbone.families import find_family

    for name in study.backbones if isinstance(study.backbones, list) else []:
        if name not in experiment.backbones:
            yield f"{name!r} is not defined under `backbones`"
        elif find_family(experiment.backbones[name].family).causal:
            yield f"{name!r} is autoregressive; studies compare masked backbones"


def _undefined(experiment: Experiment, cell: Cell) -> Iterator[str]:
    """What a study's cell names and nothing defines."""
    from entropy_valley.experiment.matrix import DEV

    block = getattr(experiment.length_methods, cell.method, None)
    if block is None:
        yield f"method {cell.method!r} is not defined under `length_methods`"
    elif isinstance(ratios := getattr(block, "ratios", None), dict) and cell.run.direction not in ratios:
        yield f"method {cell.method!r} has no ratios for {cell.run.direction}; add that key, or list its directions"
    if cell.testset not in (*experiment.sources, DEV):
        yield f"test set {cell.testset!r} is not defined under `sources`"
    blocks = {name: dict(block) for name, block in experiment.reveal_orders.items()}
    yield from (message for _, message in order_problems(blocks, [cell.order]))


def _of_layout(experiment: Experiment, study: Study, cells: Sequence[Cell]) -> Iterator[str]:
    """What the study's table or figure lacks."""
    layout, backbones = study.layout, {cell.run.backbone for cell in cells}
    if layout in ("orders", "categories"):
        yield from _of_orders(experiment, layout, cells)
    if (layout == "checks" or _is_drawn(study)) and len(backbones) > 1:
        yield f"the layout {layout}{', drawn,' if layout == 'systems' else ''} is of one backbone; name one"
    if layout == "budgets":
        yield from _of_budgets(cells)
    if layout == "checks" and "ev" not in {cell.method for cell in cells}:
        yield "the layout checks is of the method ev; add it"
    if layout == "systems" and any(column.startswith("latency") for column in study.columns):
        yield from _of_benchmark(experiment, cells)


def _of_budgets(cells: Sequence[Cell]) -> Iterator[str]:
    from entropy_valley.experiment.matrix import COMPARED

    if len(orders := {cell.order for cell in cells}) > 1:
        yield f"the layout budgets is of one reveal order, not of {', '.join(sorted(orders))}"
    there = {(cell.run, cell.steps, cell.method) for cell in cells}
    for method in COMPARED:
        if any((cell.run, cell.steps, method) not in there for cell in cells):
            yield f"the layout budgets needs the method {method} at every T; add it"


def _of_benchmark(experiment: Experiment, cells: Sequence[Cell]) -> Iterator[str]:
    """A method that deals another's canvases has nothing to time by itself."""
    from entropy_valley.experiment.params.methods import reassigned_methods

    for method in reassigned_methods(experiment):
        if method in {cell.method for cell in cells}:
            yield f"method {method!r} takes another's canvases and has no latency; remove it, or that column"


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
