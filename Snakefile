import os
import shlex
import sys

from snakemake.utils import min_version

min_version("9.0")

from entropy_valley import errors, experiment as configuration, files, revisions
from entropy_valley.backbone import adapters, checkpoint
from entropy_valley.experiment import matrix, paths, repair, scoring, session
from entropy_valley.experiment.params import corpora, human_evaluation, jobs, methods
from entropy_valley.human_evaluation import guidelines
from entropy_valley.reporting import audit, document, reports, snakemake_report
from entropy_valley.reporting.pages import sentences as sentence_pages


configfile: "config/studies.yaml"
configfile: "config.yaml"


try:
    # Snakemake lists the files of the command line first, though it lays them over these two.
    BASE = list(map(str, configuration.base_files()))
    FILES = list(dict.fromkeys([*BASE, *map(configuration.near, workflow.configfiles)]))
    EXPERIMENT = configuration.load(config, FILES, reports.problems)
    # A job on a cluster is a Snakemake of its own: it belongs to the run that submitted it.
    SESSION = session.current(EXPERIMENT, job=not workflow.is_main_process)
    REPORTS = reports.configured(EXPERIMENT)
    READY = reports.ready(EXPERIMENT, REPORTS)  # of them, those that wait for nobody
    # What `all` makes; with `snakemake --report`, what is there to be shown.
    WANTED = (snakemake_report if snakemake_report.asked(sys.argv) else reports).targets(EXPERIMENT, READY)
except errors.InputError as error:
    raise WorkflowError(str(error)) from None

R = EXPERIMENT.results
ALL_CELLS = matrix.all_cells(EXPERIMENT)


wildcard_constraints:
    direction="|".join(matrix.directions(EXPERIMENT)),
    backbone="|".join(EXPERIMENT.backbones),
    seed=matrix.RUN_NAME,
    testset="|".join([*EXPERIMENT.sources, matrix.DEV]),
    method="|".join(matrix.methods(EXPERIMENT)),
    order="|".join({cell.order: None for cell in ALL_CELLS if cell.order}),
    steps=r"\d+",
    beams=str(EXPERIMENT.autoregressive.beams),
    system="|".join(sorted({cell.system for cell in ALL_CELLS})),
    session=SESSION.id,
    environment="[0-9a-f]{16}",
    shard=r"\d+of\d+",


report: "workflow/report/workflow.rst"


include: "workflow/rules/log.smk"
include: "workflow/rules/outputs.smk"
include: "workflow/rules/preflight.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/asked.smk"
include: "workflow/rules/announce.smk"
include: "workflow/rules/check.smk"
include: "workflow/rules/limits.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/backbone.smk"
include: f"workflow/rules/{dict(trained='training', released='adapters')[EXPERIMENT.adapters]}.smk"
include: "workflow/rules/inference.smk"
include: "workflow/rules/canvas.smk"
include: "workflow/rules/decoding.smk"
include: "workflow/rules/scoring.smk"
include: "workflow/rules/human_evaluation.smk"
include: "workflow/rules/reports.smk"


onstart:
    confirm_downloads()
    slurm_preflight()
    require_what_is_needed()
    SESSION.asked(targets(), unfinished()).write(f"{R}/work/runs")


onsuccess:
    SESSION.end()
    repair.forget(R)


rule all:
    default_target: True
    input:
        WANTED,
        made_again(),
