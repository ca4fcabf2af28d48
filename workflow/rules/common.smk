# What the rules share.
#
# Each rule has two kinds of params. `spec` is what its numbers depend on, as JSON text with a digest of what it is made
# from: Snakemake compares it. `execution` only says how a job runs (folders, a device, how often to save). It is a
# function of the input or output, and Snakemake does not compare such params: a checkpoint that has moved costs no
# GPU-hours.
#
# Another workflow may have this one as a module, with a prefix that Snakemake puts before all inputs and outputs of jobs.
# So `execution_of` puts it before the paths of `execution`, and what a user's config names is `local`: it stays where it
# is.


import dataclasses
import json

from entropy_valley import files, revisions
from entropy_valley.model import adapters, checkpoint
from entropy_valley.experiment.checking import subject
from entropy_valley.experiment.config import params, paths, schema
from entropy_valley.experiment.human_evaluation.pack import LANGUAGES
from entropy_valley.experiment.tables import document, live, pages, render
from entropy_valley.experiment.tables.report import set_files
from entropy_valley.experiment.runs import work
from entropy_valley.results import CARD, DIAGNOSTICS, SCORES, TRANSLATIONS, record_path
from entropy_valley.experiment.stats.job_costs import MEMORY

GPU = int(EXPERIMENT.device == "cuda")  # of a job that uses one
# What is checked by `check`, and by the first job on a GPU before it computes (src/entropy_valley/experiment/runs/job.py).
CHECKED = subject.of(EXPERIMENT)
CHECK = dict(folder=f"{R}/work/checks", subject=CHECKED) if GPU and EXPERIMENT.check else None
# The folder of a run, and that of one of its sets of cells.
RUN = f"{R}/{{direction}}/{{backbone}}/seed{{seed}}"
SET = f"{RUN}/{{set}}"
READY = {path: made for path, made in REPORTS.items() if made.ready}  # those that wait for nobody


def one_of(names):
    """A wildcard's constraint: one of the names; without names it matches nothing."""
    return "|".join(names) or "(?!)"


def record(path):
    """The header of a result: the file beside the first output of a job that says what it was made from."""
    return str(record_path(path))


def spec_of(spec):
    """What the numbers of a rule's jobs depend on: a function of `params`, or of this file where nothing else needs it,
    for the wildcards of a job. Ends the run for a set that no run has."""
    return lambda wildcards: params.spec_of(EXPERIMENT, spec, dict(wildcards.items()))


def execution_of(execution):
    """How a job runs: what ``execution`` returns, with the paths of results as the job calls them."""

    def execution_of_job(wildcards, output):
        prefix, _, _ = str(output[0]).rpartition(f"{R}/")
        values = json.dumps(execution(wildcards), ensure_ascii=False)
        return json.loads(values.replace(f'"{R}/', f'"{prefix}{R}/'))

    return execution_of_job


# What jobs that run a model request of a cluster beside GPUs. Their time limits are in its profile.


def memory_of(name):
    """The memory of the jobs of a rule, in MB. The second attempt has twice as much where memory grows with the test sets
    and the grid. That of a training does not: each of its processes loads the backbone."""
    if GPU and name == "train":
        return max(MEMORY["train"] * EXPERIMENT.training.processes, MEMORY["translate"])
    first = MEMORY[name] if GPU else 8_000
    return lambda wildcards, attempt: first * min(attempt, 2)


# Sentence pairs.


def own_files(name, direction, *splits):
    """A user's own files, watched for changes. If one is missing, the script says so."""
    return existing(EXPERIMENT.sources[name].own_files(direction, *splits))


def existing(files):
    """Those that there are. Snakemake does not find a file that is written with //, and warns of ./ ."""
    return [local(os.path.normpath(path)) for path in files if os.path.exists(path)]


def dataset_of(source):
    """The file that says which commit a source's data set is; none where nothing is downloaded."""
    download = EXPERIMENT.sources[source].download
    return DATASET.format(dataset=download.folder) if download else []


def reading(source):
    """Where a source's data set is, and how many rows it must have."""
    download = EXPERIMENT.sources[source].download
    return dict(
        folder=paths.dataset_folder(EXPERIMENT, download.folder) if download else None,
        rows=EXPERIMENT.sources[source].total,
        confirm=EXPERIMENT.confirm,  # small archives, such as those of test sets, are downloaded where they are read
    )


def dataset_spec(experiment, dataset):
    """For the download of a data set, by the name of its folder."""
    return files.canonical(paths.downloaded_datasets(experiment)[dataset].download._asdict())


def overlap_spec(experiment, direction, testset):
    """For the counts of test sentences that occur in training."""
    train = params.corpus_digests(experiment, direction) if direction in TRAINED else {}
    made_from = params.testset_digests(experiment, direction, [testset]) | train
    return files.canonical({"revision": revisions.OVERLAP, "made_from": made_from})


def length_ratios_spec(experiment, direction):
    """For the ratios of lengths under each tokenizer of a direction."""
    families = {name: experiment.backbones[name].family for name in params.tokenizers(experiment, direction)}
    made_from = params.corpus_digests(experiment, direction)
    for name in families:
        made_from[f"backbone {name}"] = params.checkpoint_digest(experiment, name)
    return files.canonical({"revision": revisions.LENGTH_RATIOS, "tokenizers": families, "made_from": made_from})


def tokens_spec(experiment, direction, backbone, testset):
    """For the token counts of a test set, which depend on the tokenizer alone."""
    made_from = params.testset_digests(experiment, direction, [testset])
    return files.canonical(
        {
            "backbone": backbone,
            "family": experiment.backbones[backbone].family,
            "revision": revisions.TOKENS,
            "made_from": {"backbone": params.checkpoint_digest(experiment, backbone)} | made_from,
        }
    )


# Checkpoints and adapters.


def run_of(wildcards):
    return params.run_of(dict(wildcards.items()))


def backbone_files(backbone, seed=None):
    """The file that says which checkpoint a run starts from; the checkpoint itself, too, if it is pre-trained here."""
    folder = paths.backbone_folder(EXPERIMENT, backbone, seed)
    names = checkpoint.WRITTEN if EXPERIMENT.backbones[backbone].is_pretrained_here else ()
    return [paths.backbone_file(EXPERIMENT, backbone, seed), *(f"{folder}/{name}" for name in names)]


def backbone_of(wildcards):
    """The same of a job's backbone."""
    return backbone_files(wildcards.backbone, run_of(wildcards).seed if "seed" in wildcards.keys() else None)


def adapter_of(*names):
    """Files of the adapter that a run decodes with; none for a zero-shot backbone."""

    def adapter(wildcards):
        folder = paths.adapter_folder(EXPERIMENT, run_of(wildcards))
        return [f"{folder}/{name}" for name in names] if folder else []

    return adapter


def given_files(wildcards):
    """The files of a given adapter that exist, watched for changes. If some are missing, the script says so."""
    folder = paths.released_adapter(EXPERIMENT, run_of(wildcards)).folder
    return existing(f"{folder}/{name}" for name in (adapters.WEIGHTS, adapters.SETTINGS) if folder)


def all_gpus(wildcards, output, resources):
    """The GPUs of a training. Ends a run that allows fewer before anything is downloaded: Snakemake would start the
    training with those. An adapter that exists may have been trained elsewhere."""
    wanted = GPU * EXPERIMENT.training.processes
    if resources.gpu < wanted and not os.path.exists(output[0]):
        remedy = "Set `training.processes` in a config to the number of GPUs."
        problem = f"fewer than the {wanted} that a training takes (`training.processes`)"
        raise errors.InputError(f"--resources gpu={resources.gpu}", problem, remedy)
    return wanted


def training(wildcards):
    """How a training runs."""
    run = run_of(wildcards)
    return dict(
        backbone=paths.backbone_folder(EXPERIMENT, run.backbone, run.seed),
        device=EXPERIMENT.device,
        processes=EXPERIMENT.training.processes,
        micro_tokens=EXPERIMENT.training_of(run.direction).micro_tokens,
        checkpoint_every=EXPERIMENT.training.checkpoint_every,
        activation_checkpointing=EXPERIMENT.training.activation_checkpointing,
        work=f"{R}/work/train/{wildcards.direction}.{wildcards.backbone}.seed{wildcards.seed}",
        logs=paths.training_logs(EXPERIMENT, run),
        check=CHECK,
    )


# Translations and scores.


# The sets whose translation is divided into shards, by name.
DIVIDED = (
    r"[^/]+"
    if EXPERIMENT.decoding.shards not in ("auto", 1)
    else one_of(dict.fromkeys(one.name for one in SETS.all if work.shards(EXPERIMENT, one) > 1))
)


def set_of(wildcards):
    """The set that a path names. Ends the run for one that no run has."""
    return params.set_of(EXPERIMENT, dict(wildcards.items()))


def testsets_of(wildcards):
    """The test sets of a set."""
    return [TESTSET.format(direction=wildcards.direction, testset=name) for name in set_of(wildcards).testsets]


def diagnosed_testsets(wildcards):
    """The test sets whose all-mask canvases are read."""
    names = {name for names in SETS.diagnostics.get(run_of(wildcards), {}).values() for name in names}
    return [TESTSET.format(direction=wildcards.direction, testset=name) for name in sorted(names)]


def pairs_of(wildcards):
    """The training pairs of a run, where a length method is fitted to them. Ends the run for a set that no run has."""
    names = dict(wildcards.items())
    cells = matrix.CellSet(run_of(wildcards), names.get("set", ""), params.cells_of(EXPERIMENT, names))
    return rules.corpus.output.train if "fits" in params.translating(EXPERIMENT, cells) else []


def shards_of(pattern):
    """A file of each shard of a set."""

    def shards(wildcards):
        count = work.shards(EXPERIMENT, set_of(wildcards))
        return [pattern.format(**wildcards, shard=f"{number}of{count}") for number in range(count)]

    return shards


def comet_files():
    """What says which COMET checkpoints the metrics have; the one that is trained here, too."""
    trained = [TOY_COMET, *TOY_COMET_FILES] if EXPERIMENT.scoring.trains_comet else []
    return [*trained, *expand(COMET, checkpoint=paths.downloaded_comets(EXPERIMENT))]


def model(wildcards):
    """How a job runs a run's model, and where that is."""
    run = run_of(wildcards)
    return dict(
        backbone=paths.backbone_folder(EXPERIMENT, run.backbone, run.seed),
        adapter=paths.adapter_folder(EXPERIMENT, run),
        corpus=CORPUS.format(direction=wildcards.direction),
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


def comet_spec(experiment, checkpoint):
    """For the download of a COMET checkpoint, by the name of its folder."""
    section = schema.checkpoints(experiment.scoring)[paths.downloaded_comets(experiment)[checkpoint]]
    return files.canonical({"repository": section.checkpoint, "revision": section.revision})


# Tables and figures.


def read_by(folder):
    """What a report reads."""
    return lambda wildcards: REPORTS[f"{folder}/{next(iter(wildcards))}"].inputs()


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
        subcategory=lambda w: "Of the paper" if f"{kind}/{next(iter(w))}" in render.PAPER else "Ours",
        labels=lambda w: {"name": next(iter(w)), **({"as": shown} if kind == "tables" else {})},
    )


def captioned(folder):
    """The caption of a table or figure, for Snakemake's report."""
    return lambda wildcards, output: REPORTS[f"{folder}/{next(iter(wildcards))}"].text


def page_inputs(wildcards):
    """What the page of a test set's sentences reads. Ends the run for one that the config does not have."""
    return pages.inputs(EXPERIMENT, (wildcards.direction, wildcards.testset))


# Human evaluation.


def evaluated(wildcards):
    """The cells of the two systems."""
    return matrix.evaluated_cells(EXPERIMENT, wildcards.direction)


def pack_spec(experiment, direction):
    """For a pack: the two systems, the metric that chooses sentences, how many of each bucket, the seed."""
    settings, cells = experiment.human_evaluation, matrix.evaluated_cells(experiment, direction)
    made_from = params.testset_digests(experiment, direction, [cells[0].testset])
    for home in map(SETS.home.get, cells):
        made_from[f"scores {home.run.backbone} {home.name}"] = params.digest(params.scores(experiment, home))
    return files.canonical(
        {
            "revision": revisions.HUMAN_EVALUATION,
            "cells": [cell.key() for cell in cells],
            "metrics": [dataclasses.asdict(schema.metrics_of(experiment.scoring)[0])],
            "sentences": settings.sentences.model_dump(),
            "pack_seed": settings.seed,
            "made_from": made_from,
        }
    )


def of_pack(**settings):
    """For what is made of a pack, with these settings beside."""

    def spec(experiment, direction, annotator=None):
        made_from = {"pack": params.digest(pack_spec(experiment, direction))}
        return files.canonical({"revision": revisions.HUMAN_EVALUATION, **settings, "made_from": made_from})

    return spec
