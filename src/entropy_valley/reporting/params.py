"""The slices of tables, figures and tests: the cells with their files, and how to name everything."""

from __future__ import annotations

from typing import Any

from entropy_valley import plugins, revisions
from entropy_valley.backbone.families import find_family
from entropy_valley.decoding.denoising import KNOWN
from entropy_valley.engine.order import SourceGuided
from entropy_valley.experiment import Experiment
from entropy_valley.experiment.matrix import Cell, Run, instruct_cells, study_cells
from entropy_valley.experiment.params.methods import order_settings, selector_name, selector_settings
from entropy_valley.experiment.params.parts import shifted
from entropy_valley.files import canonical


def comparison(experiment: Experiment, cells: list[Cell]) -> str:
    return canonical(_comparison(experiment, cells))


def instruct(experiment: Experiment) -> str:
    """As :func:`comparison`, and what each variant of the backbone is."""
    settings = experiment.instruct
    return canonical(
        {
            **_comparison(experiment, instruct_cells(experiment)),
            "testset": f"{experiment.results}/corpus/{settings.direction}/test/{settings.testset}.jsonl",
            "variants": {name: _variant(experiment, name) for name in settings.backbones},
        }
    )


def selector_checks(experiment: Experiment, cells: list[Cell]) -> str:
    """As :func:`comparison`, and EV's grid in each direction."""
    directions = dict.fromkeys(cell.run.direction for cell in cells)
    grids = {name: selector_settings(experiment, "ev", name)["ratios"] for name in directions}
    return canonical({**_comparison(experiment, cells), "grids": grids})


def study(experiment: Experiment, name: str) -> str:
    """As :func:`comparison`, and what the study's table shows."""
    section, cells = experiment.studies[name], study_cells(experiment, name)
    shared = _comparison(experiment, cells)
    return canonical(
        {
            **shared,
            "labels": {**shared["labels"], "methods": _swept(experiment, cells)},
            "columns": section.columns,
            "against": [section.against, experiment.tables.order, experiment.tables.steps],
            "grids": {
                direction: {method: selector_settings(experiment, method, direction).get("ratios") for method in found}
                for direction, found in _methods_by_direction(cells).items()
            },
        }
    )


def orders(experiment: Experiment, name: str) -> str:
    """As :func:`comparison`, and what the reveal orders of a study are."""
    return canonical(_orders(experiment, study_cells(experiment, name)))


def challenge(experiment: Experiment, name: str) -> str:
    """As :func:`orders`, and where the sentences of each cell and their SIG are."""
    cells, root = study_cells(experiment, name), experiment.results
    return canonical(
        {
            **_orders(experiment, cells),
            "testsets": {
                cell.scores(root): f"{root}/corpus/{cell.run.direction}/test/{cell.testset}.jsonl" for cell in cells
            },
            "sigs": {cell.scores(root): f"{cell.run.folder(root)}/{cell.testset}/sig.jsonl" for cell in cells},
        }
    )


def _orders(experiment: Experiment, cells: list[Cell]) -> dict[str, Any]:
    main = experiment.tables.order
    names = dict.fromkeys([main, *(cell.order for cell in cells)])
    return {
        **_comparison(experiment, cells),
        "main": main,
        "orders": {name: _order(experiment, name) for name in names},
    }


def _order(experiment: Experiment, name: str) -> dict[str, Any]:
    found = order_settings(experiment, name)
    order, settings = found["order"], found["order_settings"]
    return {
        "order": order,
        "settings": settings,
        "source_guided": issubclass(plugins.find("reveal order", KNOWN, order), SourceGuided),
    }


def _swept(experiment: Experiment, cells: list[Cell]) -> dict[str, str]:
    """The labels of fixed ratios beside Fixed Ratio itself."""
    ratios = {
        cell.method: selector_settings(experiment, cell.method, cell.run.direction)["ratios"]
        for cell in cells
        if cell.method != "ratio" and selector_name(experiment, cell.method) == "ratio"
    }
    return {method: f"Fixed {ratio:g}" for method, ratio in ratios.items()}


def _methods_by_direction(cells: list[Cell]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for cell in cells:
        found.setdefault(cell.run.direction, []).append(cell.method)
    return {direction: list(dict.fromkeys(methods)) for direction, methods in found.items()}


def _comparison(experiment: Experiment, cells: list[Cell]) -> dict[str, Any]:
    backbones = dict.fromkeys(cell.run.backbone for cell in cells)
    directions = dict.fromkeys(cell.run.direction for cell in cells)
    return {
        "revision": revisions.REPORTING,
        "metric_name": experiment.scoring.comet.label,
        "resamples": experiment.analysis.resamples,
        "seed": experiment.analysis.seed,
        "cells": [{**cell.key(), "path": cell.scores(experiment.results)} for cell in cells],
        "labels": {
            "backbones": {name: experiment.backbones[name].label for name in backbones},
            "directions": {name: direction_label(name) for name in directions},
        },
        "ratios": {name: selector_settings(experiment, "ratio", name)["ratios"] for name in directions},
    }


def _variant(experiment: Experiment, backbone: str) -> dict[str, Any]:
    section, settings = experiment.backbones[backbone], experiment.instruct
    folder = Run(settings.direction, backbone, settings.seed).folder(experiment.results)
    trained_here = experiment.adapters == "trained" and not section.zero_shot  # only then is there a loss to show
    return {
        "label": section.label,
        "prompt": "chat" if section.chat else "plain",
        "training": "none" if section.zero_shot else "LoRA-SFT",
        "adapter": f"{folder}/adapter" if trained_here else None,
        "shifted": shifted(experiment, backbone),
        "natural_shift": find_family(section.family).shifted,
    }


def direction_label(direction: str) -> str:
    """``en-zh`` as tables print it: En→Zh."""
    return "→".join(code.capitalize() for code in direction.split("-"))
