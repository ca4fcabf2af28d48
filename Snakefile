import os

from snakemake.utils import min_version

min_version("9.0")

from entropy_valley import errors, machine
from entropy_valley.experiment import config as configuration, tables
from entropy_valley.experiment.config import matrix
from entropy_valley.decoding.requests import KNOWN
from entropy_valley.experiment.runs import snapshot

# Beside this file, also with --directory or as a module.
BASE = [workflow.source_path(name) for name in ("config/studies.yaml", "config.yaml")]


# The config as this run was started with: a job on a cluster is a Snakemake of its own, and the files may be edited while
# it waits. The first process writes it down and hands its path on.
envvars:
    snapshot.VARIABLE,


# Snakemake lays the files of the command line over those below.
BELOW, FILES = snapshot.config_files(BASE, workflow.configfiles)

for path in BELOW:

    configfile: path


config = snapshot.merged(config, BASE, workflow.configfiles)
EXPERIMENT = configuration.load_merged(config, FILES, tables.problems)
REPORTS = tables.configured(EXPERIMENT)

R = EXPERIMENT.results
SETS = matrix.sets_of(EXPERIMENT)


wildcard_constraints:
    direction="|".join(EXPERIMENT.directions),
    backbone="|".join(EXPERIMENT.backbones),
    seed=matrix.RUN_NAME,
    testset="|".join([*EXPERIMENT.sources, matrix.DEV]),
    set=r"[^/]+",
    method="|".join(name for name, block in EXPERIMENT.length_methods if block),
    order="|".join([*KNOWN, *EXPERIMENT.reveal_orders]),
    steps=r"\d+",
    shard=r"\d+of\d+",


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/cells.smk"
include: "workflow/rules/human_evaluation.smk"
include: "workflow/rules/reports.smk"


onstart:
    machine.require_empty_queue()
    snapshot.hand_down(R, config)


TARGETS = [
    *(one.scores(R) for one in SETS.all),
    *(f"{R}/{path}.{ending}" for path, made in READY.items() for ending in made.endings),
]


rule all:
    default_target: True
    input:
        lambda wildcards: TARGETS,  # a job on a cluster does not look at them


snapshot.running = snapshot.Running(EXPERIMENT, config, FILES, list(map(str, TARGETS)), rules)
