# What the rules share.
#
# Each rule has two kinds of params. `spec` is what its numbers depend on, as JSON text with a digest of what it is made
# from: Snakemake compares it. `how` only says how a job runs (folders, a device, how often to save). It is a function of
# the input or output, and Snakemake does not compare such params: a checkpoint that has moved costs no GPU-hours.
#
# Another workflow may have this one as a module, with a prefix that Snakemake puts before all inputs and outputs of jobs.
# So `how_of` puts it before the paths of `how`, and what a user's config names is `local`: it stays where it is.

from entropy_valley import revisions
from entropy_valley.backbone import adapters, checkpoint
from entropy_valley.checking import subject
from entropy_valley.experiment import paths, scoring
from entropy_valley.experiment.params import corpora, human_evaluation, jobs
from entropy_valley.human_evaluation import guidelines
from entropy_valley.reporting import document
from entropy_valley.reporting.pages import sentences as sentence_pages
from entropy_valley.results import DIAGNOSTICS, SCORES, TRANSLATIONS, header_path, moved

GPU = int(EXPERIMENT.device == "cuda")  # of a job that uses one
# What the first job on a GPU checks before it computes, see src/entropy_valley/runs/job.py.
CHECK = dict(folder=f"{R}/work/checks", subject=subject.of(EXPERIMENT)) if GPU and EXPERIMENT.check else None
# The folder of a run, and that of one of its sets of cells.
RUN = f"{R}/{{direction}}/{{backbone}}/seed{{seed}}"
SET = f"{RUN}/{{set}}"
READY = {path: made for path, made in REPORTS.items() if made.ready(EXPERIMENT)}  # those that wait for nobody


def one_of(names):
    """A wildcard's constraint: one of the names; without names it matches nothing."""
    return "|".join(names) or "none"


def run_of(wildcards):
    return matrix.Run.named(wildcards.direction, wildcards.backbone, wildcards.seed)


def set_of(wildcards):
    """The set of cells that a path names."""
    try:
        return SETS.named(run_of(wildcards), wildcards.set)
    except errors.InputError as error:
        raise WorkflowError(str(error)) from None


def reads(output):
    """The files of other jobs that the job of an output reads, as the inventory of jobs has them."""
    return lambda wildcards: list(INVENTORY.at(output.format(**dict(wildcards.items()))).inputs)


def spec_of(output):
    """The params of the job of an output."""
    return lambda wildcards: INVENTORY.at(output.format(**dict(wildcards.items()))).spec


def root_of(path, output):
    """The folder of results as a job calls it whose first output has this path in the config's words."""
    return str(output[0]).removesuffix(path.removeprefix(R))


def how_of(pattern, how):
    """How a job runs whose first output has a path like this: what ``how`` returns, with the paths of results as the
    job calls them."""

    def moved_how(wildcards, output):
        return moved(how(wildcards), R, root_of(pattern.format(**dict(wildcards.items())), output))

    return moved_how
