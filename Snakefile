import os
import shlex

from snakemake.utils import min_version

min_version("9.0")

from entropy_valley import errors, experiment as configuration
from entropy_valley.backbone import adapters
from entropy_valley.experiment import audit, matrix, paths, scoring
from entropy_valley.experiment.params import jobs, methods
from entropy_valley.reporting import params as tables


configfile: "config/studies.yaml"
configfile: "config.yaml"


try:
    # Snakemake lists the files of the command line first, though it lays them over these two.
    BASE = list(map(str, configuration.base_files()))
    FILES = [*BASE, *(path for path in map(str, workflow.configfiles) if path not in BASE)]
    EXPERIMENT = configuration.load(config, FILES)
except errors.InputError as error:
    raise WorkflowError(str(error)) from None

R = EXPERIMENT.results
TABLE_CELLS = matrix.table_cells(EXPERIMENT)
MAIN_CELLS = matrix.table_cells(EXPERIMENT, EXPERIMENT.tables.backbone)
VALLEY_CELLS = matrix.valley_cells(EXPERIMENT)
SWEPT_CELLS = [cell for cell in VALLEY_CELLS if cell.run.backbone == EXPERIMENT.tables.backbone]
AR_CELLS = matrix.autoregressive_cells(EXPERIMENT)
INSTRUCT_CELLS = matrix.instruct_cells(EXPERIMENT)
STUDIES = {name: cells for name in EXPERIMENT.tables.studies if (cells := matrix.study_cells(EXPERIMENT, name))}
ALL_CELLS = matrix.all_cells(EXPERIMENT)


wildcard_constraints:
    direction="|".join(EXPERIMENT.matrix.directions),
    backbone="|".join(EXPERIMENT.backbones),
    seed=r"\d+",
    testset="|".join([*EXPERIMENT.sources, matrix.DEV]),
    method="|".join(matrix.methods(EXPERIMENT)),
    order="|".join({cell.order: None for cell in ALL_CELLS if cell.order}),
    steps=r"\d+",
    beams=str(EXPERIMENT.autoregressive.beams),
    system="|".join(sorted({cell.system for cell in ALL_CELLS})),
    study="|".join(STUDIES) or "none",


report: "workflow/report/workflow.rst"


include: "workflow/rules/log.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/backbone.smk"
include: f"workflow/rules/{dict(trained='training', released='adapters')[EXPERIMENT.adapters]}.smk"
include: "workflow/rules/canvas.smk"
include: "workflow/rules/decoding.smk"
include: "workflow/rules/scoring.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/audit.smk"


rule all:
    default_target: True
    input:
        rules.main_table.output,
        rules.crossbb_table.output,
        rules.significance.output,
        rules.hero_figure.output,
        rules.crossbb_figure.output,
        rules.entropy_valley_figure.output if VALLEY_CELLS else [],
        rules.selector_checks_figure.output if SWEPT_CELLS else [],
        rules.ar_reference_table.output if AR_CELLS else [],
        rules.dream_instruct_table.output if INSTRUCT_CELLS else [],
        expand(rules.study_table.output, study=studies_of("systems")),
        expand(rules.systems_figure.output, study=studies_of("systems", figure=True)),
        expand(rules.order_table.output, study=studies_of("orders")),
        expand(rules.challenge_table.output, study=studies_of("categories")),
        expand(rules.selector_checks_table.output, study=studies_of("checks")),
        expand(rules.budgets_table.output + rules.budgets_figure.output, study=studies_of("budgets")),
