# What the rules share.
#
# Each rule has two kinds of params. `spec` is what its numbers depend on, as JSON text with a digest of what it is made
# from: Snakemake compares it. `how` only says how a job runs (folders, a device, how often to save). It is a function of
# the input or output, and Snakemake does not compare such params: a checkpoint that has moved costs no GPU-hours.
#
# Another workflow may have this one as a module, with a prefix that Snakemake puts before all inputs and outputs of jobs.
# So `how_of` puts it before the paths of `how`, and what a user's config names is `local`: it stays where it is.

import functools

from entropy_valley import revisions
from entropy_valley.model import adapters, checkpoint
from entropy_valley.checking import subject
from entropy_valley.config import params, paths, schema
from entropy_valley.human_evaluation.pack import LANGUAGES
from entropy_valley.tables import document, pages
from entropy_valley.runs import limits, plan
from entropy_valley.results import DIAGNOSTICS, SCORES, TRANSLATIONS, header_path, moved

GPU = int(EXPERIMENT.device == "cuda")  # of a job that uses one
# What the first job on a GPU checks before it computes, see src/entropy_valley/runs/job.py.
CHECK = (
    dict(folder=paths.checks_folder(EXPERIMENT), subject=subject.of(EXPERIMENT)) if GPU and EXPERIMENT.check else None
)
# The folder of a run, and that of one of its sets of cells.
RUN = f"{R}/{{direction}}/{{backbone}}/seed{{seed}}"
SET = f"{RUN}/{{set}}"
READY = {path: made for path, made in REPORTS.items() if made.ready}  # those that wait for nobody


def one_of(names):
    """A wildcard's constraint: one of the names; without names it matches nothing."""
    return "|".join(names) or "none"


def run_of(wildcards):
    return matrix.Run.named(wildcards.direction, wildcards.backbone, wildcards.seed)


def job_of(output, wildcards):
    """The job that makes an output, as the inventory of jobs has it; ends the run for a set that no run has."""
    try:
        return INVENTORY.at(output.format(**dict(wildcards.items())))
    except errors.InputError as error:
        raise WorkflowError(str(error)) from None


def inputs_of(output):
    """The files of other jobs that the job of an output reads."""
    return lambda wildcards: list(job_of(output, wildcards).inputs)


def testsets_of(output):
    """The test sets among them."""
    return lambda wildcards: [path for path in job_of(output, wildcards).inputs if "/test/" in path]


def model_of(output):
    """The others: what says which adapter and backbone it is, and training pairs for its fits."""
    return lambda wildcards: [path for path in job_of(output, wildcards).inputs if "/test/" not in path]


def spec_of(output):
    """The params of the job of an output."""
    return lambda wildcards: job_of(output, wildcards).spec


def root_of(path, output):
    """The folder of results as a job calls it whose first output has this path in the config's words."""
    return str(output[0]).removesuffix(path.removeprefix(R))


def how_of(pattern, how):
    """How a job runs whose first output has a path like this: what ``how`` returns, with the paths of results as the
    job calls them."""

    def moved_how(wildcards, output):
        return moved(how(wildcards), R, root_of(pattern.format(**dict(wildcards.items())), output))

    return moved_how


# What jobs that run a model request of a cluster, beside GPUs. A computer without one has no use for it.


@functools.cache
def plan_of_jobs():
    """What jobs take, by what finished ones took."""
    return plan.Plan(EXPERIMENT, [], INVENTORY.all())


def runtime_of(output):
    """The time limit of the job of an output, in minutes."""
    return lambda wildcards: plan_of_jobs().minutes(job_of(output, wildcards))


def memory_of(rule):
    """The memory of a rule's jobs, in MB."""
    return lambda wildcards, attempt: limits.memory(rule if GPU else "", attempt)


# Sentence pairs.


def own_files(name, direction, *splits):
    """A user's own files, watched for changes. If one is missing, the script says so."""
    return [local(path) for path in EXPERIMENT.sources[name].watched(direction, *splits) if os.path.exists(path)]


def dataset_of(source):
    """The file that says which commit a source's data set is; none where nothing is downloaded."""
    name = paths.dataset_of(EXPERIMENT, source)
    return DATASET.format(dataset=name) if name else []


def reading(source):
    """Where a source's data set is, and how many rows it must have."""
    name = paths.dataset_of(EXPERIMENT, source)
    return dict(
        folder=paths.dataset_folder(EXPERIMENT, name) if name else None,
        rows=EXPERIMENT.sources[source].total,
        confirm=EXPERIMENT.confirm,  # small archives, such as those of test sets, are downloaded where they are read
    )


# Checkpoints and adapters.


def backbone_of(wildcards):
    """The file that stands for the checkpoint that a run starts from."""
    return INVENTORY.backbone(wildcards.backbone, run_of(wildcards).seed)


def given_files(wildcards):
    """The files of a given adapter that exist, watched for changes. If some are missing, the script says so."""
    folder = paths.released_adapter(EXPERIMENT, run_of(wildcards)).folder
    files = [f"{folder}/{name}" for name in (adapters.WEIGHTS, adapters.SETTINGS)] if folder else []
    return [local(path) for path in files if os.path.exists(path)]


def all_gpus(wildcards, output, resources):
    """The GPUs of a training. Ends a run that allows fewer before anything is downloaded: Snakemake would start the
    training with those. An adapter that exists may have been trained elsewhere."""
    wanted = GPU * EXPERIMENT.training.processes
    if resources.gpu < wanted and not os.path.exists(output[0]):
        remedy = "Set `training.processes` in a config to the number of GPUs."
        problem = f"fewer than the {wanted} that a training takes (`training.processes`)"
        raise WorkflowError(str(errors.InputError(f"--resources gpu={resources.gpu}", problem, remedy)))
    return wanted


def training(wildcards):
    """How a training runs. ``tested`` are the test sets with whose references its backbone must cope: better told
    before a training than after."""
    run = run_of(wildcards)
    return dict(
        backbone=paths.backbone_folder(EXPERIMENT, run.backbone, run.seed),
        device=EXPERIMENT.device,
        processes=EXPERIMENT.training.processes,
        micro_tokens=EXPERIMENT.training_of(run.direction).micro_tokens,
        checkpoint_every=EXPERIMENT.training.checkpoint_every,
        activation_checkpointing=EXPERIMENT.training.activation_checkpointing,
        wandb=EXPERIMENT.training.wandb,
        tested=[INVENTORY.testset(run.direction, name) for name in params.measured_by_references(EXPERIMENT, run)],
        work=f"{R}/work/train/{wildcards.direction}.{wildcards.backbone}.seed{wildcards.seed}",
        logs=f"{R}/logs/tensorboard/{wildcards.direction}/{wildcards.backbone}/seed{wildcards.seed}",
        check=CHECK,
    )


# Translations and scores.


def shards_of(wildcards):
    """The files of the shards of a set; none where one job translates it."""
    return [job.outputs[0] for job in INVENTORY.shards(job_of(f"{SET}/{TRANSLATIONS}", wildcards))]


def model(wildcards):
    """How a job runs a run's model, and where that is."""
    run = run_of(wildcards)
    return dict(
        backbone=paths.backbone_folder(EXPERIMENT, run.backbone, run.seed),
        adapter=paths.adapter_folder(EXPERIMENT, run),
        corpus=os.path.dirname(INVENTORY.corpus(wildcards.direction)),
        store=run.folder(f"{R}/store") if EXPERIMENT.store else None,
        device=EXPERIMENT.device,
        check=CHECK,
    )


def metrics(wildcards):
    """Where the checkpoints of the metrics are, and on what they run."""
    return dict(
        checkpoints={name: paths.comet_folder(EXPERIMENT, name) for name in schema.checkpoints(EXPERIMENT.scoring)},
        store=f"{R}/store/scoring/{wildcards.direction}" if EXPERIMENT.store else None,
        device=EXPERIMENT.device,
    )


# Tables and figures.


def in_folder(folder, *endings):
    """The reports of a folder that have these endings, by file."""
    return [
        path.split("/")[1]
        for path, made in REPORTS.items()
        if path.startswith(folder) and tuple(made.endings) == endings
    ]


def in_report(path, kind, shown="page"):
    """Marks a file for Snakemake's report. `kind` is tables or figures, and the wildcard's name with an s."""
    return report(
        path,
        caption="../report/caption.rst",
        category=kind.capitalize(),
        subcategory=lambda w: "Of the paper" if f"{kind}/{next(iter(w))}" in document.PAPER else "Ours",
        labels=lambda w: {"name": next(iter(w)), **({"as": shown} if kind == "tables" else {})},
    )
