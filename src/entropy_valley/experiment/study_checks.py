"""Names in studies that nothing defines. What its table or figure lacks, a study's report knows."""

from __future__ import annotations

from collections.abc import Iterator

from entropy_valley.backbone.families import find_family
from entropy_valley.experiment.checks import Problem
from entropy_valley.experiment.matrix import DEV, Cell, study_cells
from entropy_valley.experiment.orders import order_problems
from entropy_valley.experiment.schema import Experiment
from entropy_valley.experiment.studies import Study


def study_problems(experiment: Experiment) -> Iterator[Problem]:
    """Every such problem of the studies that ``tables.studies`` lists."""
    for name in experiment.tables.studies:
        if name in experiment.studies:
            for problem in dict.fromkeys(undefined(experiment, name)):
                yield ("studies", name), problem
        else:
            there = ", ".join(experiment.studies) or "none"
            yield ("tables", "studies"), f"{name!r} is not defined; `studies` has {there}"


def undefined(experiment: Experiment, name: str) -> list[str]:
    """What a study names and nothing defines."""
    backbones = [*_backbones(experiment, experiment.studies[name])]
    if backbones:  # then it has no cells that could be looked at
        return backbones
    return [problem for cell in study_cells(experiment, name) for problem in _undefined(experiment, cell)]


def _backbones(experiment: Experiment, study: Study) -> Iterator[str]:
    for name in study.backbones if isinstance(study.backbones, list) else []:
        if name not in experiment.backbones:
            yield f"{name!r} is not defined under `backbones`"
        elif find_family(experiment.backbones[name].family).causal:
            yield f"{name!r} is autoregressive; studies compare masked backbones"


def _undefined(experiment: Experiment, cell: Cell) -> Iterator[str]:
    """What a study's cell names and nothing defines."""
    block = getattr(experiment.length_methods, cell.method, None)
    if block is None:
        yield f"method {cell.method!r} is not defined under `length_methods`"
    elif isinstance(ratios := getattr(block, "ratios", None), dict) and cell.run.direction not in ratios:
        yield f"method {cell.method!r} has no ratios for {cell.run.direction}; add that key, or list its directions"
    if cell.testset not in (*experiment.sources, DEV):
        yield f"test set {cell.testset!r} is not defined under `sources`"
    blocks = {name: dict(block) for name, block in experiment.reveal_orders.items()}
    yield from (message for _, message in order_problems(blocks, [cell.order]))
