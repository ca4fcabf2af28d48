"""Every table and figure by its name, and which of them a config has.

A new one is a class in a file of this folder and a line in :data:`REPORTS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files, provenance
from entropy_valley.config import Experiment
from entropy_valley.config.checks import Problem, undefined
from entropy_valley.config.matrix import study_cells
from entropy_valley.errors import InputError, question
from entropy_valley.stats.cells import Params
from entropy_valley.stats.closure import require_means
from entropy_valley.stats.signatures import require_alike
from entropy_valley.tables import systems
from entropy_valley.tables.ar_reference import ArReference
from entropy_valley.tables.base import FigureReport, OfStudy, OfTables, Report
from entropy_valley.tables.budgets import Budgets, BudgetsFigure
from entropy_valley.tables.cases import Cases, CasesFigure
from entropy_valley.tables.categories import Categories
from entropy_valley.tables.config_tables import HyperparamsTable, PromptsTable
from entropy_valley.tables.corpus import CorpusTable
from entropy_valley.tables.cost import Cost
from entropy_valley.tables.coverage import CoverageTable, FaithfulnessSummary
from entropy_valley.tables.crossbb import CrossBackbone, CrossBackboneBleu, CrossBackboneFigure
from entropy_valley.tables.dissociation import Dissociation, DissociationFigure
from entropy_valley.tables.dream_instruct import DreamInstruct
from entropy_valley.tables.failure_buckets import FailureBuckets
from entropy_valley.tables.full_significance import Significance
from entropy_valley.tables.hero import Hero
from entropy_valley.tables.human_eval import HumanEval, HumanEvalDetails, HumanEvalFigure
from entropy_valley.tables.main import Main
from entropy_valley.tables.matrix import MatrixTable
from entropy_valley.tables.method import MethodFigure
from entropy_valley.tables.order_sweep import Orders
from entropy_valley.tables.paper_comparison import PaperComparisonTable
from entropy_valley.tables.readings import Readings
from entropy_valley.tables.reproduction import Reproduction
from entropy_valley.tables.selector_checks import Checks, SelectorChecksFigure
from entropy_valley.tables.systems import MAIN, Systems, SystemsFigure
from entropy_valley.tables.transfer import Transfer
from entropy_valley.tables.valley_figure import EntropyValleyFigure

# Each by its folder of the results and its file there; those of studies by their layout, the file being the study's.
REPORTS: dict[str, type[Report]] = {
    "tables/main": Main,
    "tables/crossbb": CrossBackbone,
    "tables/crossbb_bleu": CrossBackboneBleu,
    "tables/matrix": MatrixTable,
    "tables/full_significance": Significance,
    "tables/ar_reference": ArReference,
    "tables/dream_instruct": DreamInstruct,
    "tables/dissociation": Dissociation,
    "tables/cases": Cases,
    "tables/systems": Systems,
    "tables/transfer": Transfer,
    "tables/orders": Orders,
    "tables/categories": Categories,
    "tables/budgets": Budgets,
    "tables/checks": Checks,
    "tables/readings": Readings,
    "tables/reproduction": Reproduction,
    "tables/coverage": CoverageTable,
    "tables/faithfulness_summary": FaithfulnessSummary,
    "tables/failure_buckets": FailureBuckets,
    "tables/hyperparams": HyperparamsTable,
    "tables/prompts": PromptsTable,
    "tables/cost": Cost,
    "tables/paper_comparison": PaperComparisonTable,
    "tables/corpus": CorpusTable,
    "tables/human_eval": HumanEval,
    "tables/human_eval_details": HumanEvalDetails,
    "figures/human_eval": HumanEvalFigure,
    "figures/hero": Hero,
    "figures/method": MethodFigure,
    "figures/crossbb": CrossBackboneFigure,
    "figures/entropy_valley": EntropyValleyFigure,
    "figures/dissociation": DissociationFigure,
    "figures/cases": CasesFigure,
    "figures/selector_checks": SelectorChecksFigure,
    "figures/systems": SystemsFigure,
    "figures/budgets": BudgetsFigure,
}


def find(key: str) -> type[Report]:
    """The class of a key of :data:`REPORTS`."""
    if key not in REPORTS:
        raise InputError(key, "is no report", f"{question(key, REPORTS)}Name one of {', '.join(REPORTS)}.")
    return REPORTS[key]


def write(params: Mapping[str, Any], how: Mapping[str, Any], outputs: Sequence[str]) -> None:
    """Make a table or a figure, a file for each of its endings, and the record of all that it read.

    ``params`` are those of its rule. ``how`` has its key (``report``), its ``caption``, and where the results are:
    ``root`` as the params say it, ``here`` for this process.
    """
    kind = find(how["report"])
    paths = dict(zip(kind.endings, map(Path, outputs), strict=True))
    report = kind(how["report"], paths["csv"].stem, how["caption"])
    values = Params.of(params, how)
    with provenance.made(kind.rule, params, [], outputs) as record, files.noted(record.inputs):
        if kind.scored:
            record.facts["length_methods"] = require_alike(values.cells)
            require_means(values.cells, values.metric)
        report.write(values, **paths)


def layouts() -> list[str]:
    """What ``layout`` of a study may be."""
    return list(dict.fromkeys(key.split("/")[1] for key, kind in REPORTS.items() if issubclass(kind, OfStudy)))


def configured(experiment: Experiment) -> dict[str, Report]:
    """The reports that a config has, by folder and file: ``tables/main``."""
    reports = {}
    for key, kind in REPORTS.items():
        folder, layout = key.split("/")
        for name in _studies(experiment, layout) if issubclass(kind, OfStudy) else [layout]:
            report = kind(key, name)
            if report.wanted(experiment):
                reports[f"{folder}/{_file(experiment, kind, name)}"] = report
    for report in reports.values():
        if isinstance(report, OfTables):
            report.made = tuple(path for path, one in reports.items() if one.comparable(experiment))
    return reports


def known() -> dict[str, Any]:
    """What the config's schema says of the values that the reports know."""
    further = {"description": "a key of `scoring.metrics`", "type": "string"}
    columns = {"items": {"anyOf": [{"enum": [*systems.COLUMNS, MAIN, "bleu", "chrf"]}, further]}}
    return {"Study": {"layout": {"enum": layouts()}, "columns": columns}}


def problems(experiment: Experiment) -> list[Problem]:
    """What is wrong with the studies of a config as far as their tables and figures go, see ``config.load``."""
    listed: list[Problem] = []
    columns = systems.column_names(experiment)
    for name, study in experiment.studies.items():
        if study.layout not in layouts():
            listed.append((("studies", name, "layout"), f"is no layout; there are {', '.join(layouts())}"))
        unknown = [column for column in study.columns if column not in columns]
        if unknown:
            message = f"{', '.join(unknown)}: no such column; there are {', '.join(columns)}"
            listed.append((("studies", name, "columns"), message))
        elif name in experiment.tables.studies:
            listed += [(("studies", name), text) for text in dict.fromkeys(_of_study(experiment, name))]
    return listed


def _studies(experiment: Experiment, layout: str) -> list[str]:
    return [name for name in experiment.tables.studies if experiment.studies[name].layout == layout]


def _file(experiment: Experiment, kind: type[Report], name: str) -> str:
    """A report's file: a study's figure may have another name than its table."""
    named = experiment.studies[name].figure if issubclass(kind, OfStudy) and issubclass(kind, FigureReport) else None
    return named if isinstance(named, str) else name


def _of_study(experiment: Experiment, name: str) -> Iterator[str]:
    if undefined(experiment, name):  # then its cells cannot be looked at
        return
    study, cells = experiment.studies[name], study_cells(experiment, name)
    for key, kind in REPORTS.items():
        folder, layout = key.split("/")
        if not (issubclass(kind, OfStudy) and layout == study.layout):
            continue
        report, file = kind(key, name), _file(experiment, kind, name)
        other = REPORTS.get(f"{folder}/{file}", OfStudy)
        taken = {_file(experiment, kind, one) for one in experiment.tables.studies if one != name}
        if report.cells(experiment) and (file in taken or not issubclass(other, OfStudy)):
            yield f"{file} is the name of another table or figure; choose another name"
        if report.cells(experiment) and study.pools and not kind.tells_pools:
            yield f"a {folder[:-1]} of layout {layout} tells no pools apart; remove `pools`"
        if cells:
            yield from report.problems(experiment, study, cells)
