"""Every table and figure by its name, and which of them a config has.

A new one is a function in a file of this folder and a line in :data:`REPORTS`.
"""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from entropy_valley import files, revisions
from entropy_valley.errors import question
from entropy_valley.experiment.config import Experiment
from entropy_valley.experiment.config.checks import Problem, undefined
from entropy_valley.experiment.config.schema import metrics_of
from entropy_valley.experiment.stats import paper_numbers
from entropy_valley.experiment.tables import (
    cases,
    cost,
    coverage,
    dissociation,
    document,
    dream_instruct,
    hero,
    human_eval,
    live,
    method,
    orders,
    pages,
    paired_tests,
    paper_comparison,
    pooled,
    scores,
    systems,
    training_tables,
    valley,
)
from entropy_valley.experiment.tables.report import AGAINST, Kind, Report
from entropy_valley.results import SHORT
from entropy_valley.settings import values_of

# Each by its folder of the results and its file there; those of studies by their layout, the file being the study's.
REPORTS: dict[str, Kind] = {
    "tables/main": scores.main,
    "tables/crossbb": scores.crossbb,
    "tables/crossbb_bleu": scores.crossbb_bleu,
    "tables/matrix": scores.whole_matrix,
    "tables/full_significance": paired_tests.full_significance,
    "tables/ar_reference": paired_tests.ar_reference,
    "tables/dream_instruct": dream_instruct.dream_instruct,
    "tables/dissociation": dissociation.dissociation,
    "tables/cases": cases.cases,
    "tables/systems": systems.systems_table,
    "tables/pooled": pooled.pooled,
    "tables/ceiling": pooled.ceiling,
    "tables/transfer": systems.transfer,
    "tables/orders": orders.orders,
    "tables/categories": orders.categories,
    "tables/budgets": scores.budgets,
    "tables/checks": valley.checks,
    "tables/readings": scores.readings,
    "tables/reproduction": scores.reproduction,
    "tables/coverage": coverage.coverage,
    "tables/faithfulness_summary": coverage.faithfulness_summary,
    "tables/failure_buckets": coverage.failure_buckets,
    "tables/hyperparams": training_tables.hyperparams,
    "tables/prompts": training_tables.prompts,
    "tables/cost": cost.cost,
    "tables/paper_comparison": paper_comparison.paper_comparison,
    "tables/corpus": training_tables.corpus,
    "tables/human_eval": human_eval.human_eval,
    "tables/human_eval_details": human_eval.human_eval_details,
    "figures/human_eval": human_eval.human_eval_figure,
    "figures/hero": hero.hero,
    "figures/method": method.method,
    "figures/crossbb": scores.crossbb_figure,
    "figures/entropy_valley": valley.entropy_valley,
    "figures/dissociation": dissociation.dissociation_figure,
    "figures/cases": cases.cases_figure,
    "figures/selector_checks": valley.selector_checks,
    "figures/systems": systems.systems_figure,
    "figures/budgets": scores.budgets_figure,
}

LAYOUTS = list(dict.fromkeys(key.split("/")[1] for key, kind in REPORTS.items() if kind.of_study))
APART = {"backbone": "backbones", "order": "reveal orders", "steps": "step budgets"}


@functools.cache
def spec(experiment: Experiment) -> str:
    """What tables, figures, pages and the document depend on beside the files that they read, as their rules' params.

    It is coarse, and one for all of them: a digest of each section of the config, and all revisions. To make a table
    once too often takes a second. An edit of a user's own class makes its sets again, and so the tables that read them.
    """
    # A digest for each section, so that Snakemake can say which one has changed.
    sections = {name: files.digest(value)[:SHORT] for name, value in values_of(experiment).items()}
    numbers = {name: value for name, value in vars(revisions).items() if name.isupper()}
    # Files beside the config that tables depend on.
    read = {"paper": files.file_digest(paper_numbers.TRANSCRIPTION)[:SHORT]}
    if own := experiment.tables.matplotlibrc:
        read["matplotlibrc"] = files.file_digest(own)[:SHORT]
    return files.canonical({**sections, "revisions": files.digest(numbers)[:SHORT], **read})


def configured(experiment: Experiment) -> dict[str, Report]:
    """The reports that a config has, by folder and file: ``tables/main``."""
    reports: dict[str, Report] = {}
    for key, kind in REPORTS.items():
        folder, layout = key.split("/")
        studies = [name for name in experiment.tables.studies if experiment.studies[name].layout == layout]
        for name in studies if kind.of_study else [layout]:
            report = Report(kind, experiment, key, name)
            # A config that lacks what a table shows has no such table.
            if report.wanted:
                reports[f"{folder}/{_file(experiment, kind, name)}"] = report
    # The comparison with the paper reads the other tables.
    if comparison := reports.get("tables/paper_comparison"):
        for name in paper_numbers.tables():
            one = reports.get(f"tables/{name}")
            if one and (one.kind.comparable or one.kind.ready)(one.names):
                comparison.names.made.append(name)
    return reports


def make(experiment: Experiment, outputs: Sequence[str]) -> None:
    """Make a table or figure, the page of a test set's sentences, the live page, or the document of all: its files, in
    the folder of the results that it is made of."""
    out = Path(outputs[0])
    # The names of tables and figures are those of the registry, so the others come first.
    if out.name == live.NAME:
        live.write(out)
    elif out.name == f"{document.NAME}.tex":
        document.write(experiment, configured(experiment), out)
    elif out.parent.name == "pages":
        direction, testset = out.stem.split(".", 1)
        pages.write(experiment, (direction, testset), out)
    else:
        report = configured(experiment)[f"{out.parent.name}/{out.stem}"]
        report.write(outputs[: len(report.endings)])


def known() -> dict[str, Any]:
    """What the config's schema says of the values that the reports know."""
    further = {"description": "a key of `scoring.metrics`", "type": "string"}
    columns = {"items": {"anyOf": [{"enum": [*systems.COLUMNS, systems.MAIN, "bleu", "chrf"]}, further]}}
    return {"Study": {"layout": {"enum": LAYOUTS}, "columns": columns}}


def problems(experiment: Experiment) -> list[Problem]:
    """What is wrong with the studies of a config as far as their tables and figures go, see ``config.load``."""
    listed: list[Problem] = []
    for name in experiment.scoring.metrics:
        if name in (*systems.COLUMNS, "statistic", "runs"):
            listed.append((("scoring", "metrics", name), "is a column of studies; give the metric another name"))
    columns = [*systems.COLUMNS, *systems.metrics_by_column(metrics_of(experiment.scoring))]
    for name, study in experiment.studies.items():
        if study.layout not in LAYOUTS:
            listed.append((("studies", name, "layout"), f"is not a layout; there are {', '.join(LAYOUTS)}"))
        # Columns are checked for every study, the rest only where a table asks for it.
        unknown = [column for column in study.columns if column not in columns]
        if unknown:
            known = f"{question(unknown[0], columns).lower()}there are {', '.join(columns)}"
            listed.append((("studies", name, "columns"), f"{', '.join(unknown)}: no such column; {known}"))
        elif name in experiment.tables.studies:
            listed += [(("studies", name), text) for text in dict.fromkeys(_of_study(experiment, name))]
    return listed


def _file(experiment: Experiment, kind: Kind, name: str) -> str:
    """A report's file: a study's figure may have another name than its table."""
    named = experiment.studies[name].figure if kind.of_study and kind.rule == "figure" else None
    return named if isinstance(named, str) else name


def _of_study(experiment: Experiment, name: str) -> Iterator[str]:
    if undefined(experiment, name):  # then its cells cannot be looked at
        return
    study = experiment.studies[name]
    for key, kind in REPORTS.items():
        folder, layout = key.split("/")
        if not (kind.of_study and layout == study.layout):
            continue
        # Two reports of one folder may not write the same file.
        report, file = Report(kind, experiment, key, name), _file(experiment, kind, name)
        other = REPORTS.get(f"{folder}/{file}")
        taken = {_file(experiment, kind, one) for one in experiment.tables.studies if one != name}
        if not report.wanted:
            continue
        if file in taken or (other and not other.of_study):
            yield f"{file} is the name of another table or figure; choose another name"
        what = f"a {folder[:-1]} of layout {layout}"
        for key, several in APART.items():
            if key not in kind.tells and len({getattr(cell, key) for cell in report.cells}) > 1:
                yield f"{what} tells no {several} apart; name one"
        if study.pools and "pool" not in kind.tells:
            yield f"{what} tells no pools apart; remove `pools`"
        needed = {study.against if name == AGAINST else name for name in kind.needs}
        if lacking := needed - {cell.method for cell in report.cells}:
            yield f"{what} needs the methods {', '.join(sorted(lacking))}; add them"
        yield from kind.problems(report.names)
