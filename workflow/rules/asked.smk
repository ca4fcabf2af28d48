# What this run of Snakemake asks of the models, and the stamps that put the jobs that compute it before those that read
# it from the store.

import functools
import re

from snakemake.io import IOFile
from snakemake.persistence import PersistenceBase

from entropy_valley import driver
from entropy_valley.checking import subject
from entropy_valley.driver import Machine
from entropy_valley.experiment import asked
from entropy_valley.experiment.chain import Chain

# A job that loads a model leaves a stamp, a temporary file with the session in its name. A job that must run waits for a
# stamp of this session. So the job that loads the model is planned with the jobs that need it, it knows them, and it
# touches no others: a finished job waits for none, and if it is forced to run it loads the model itself.
STAMPS = f"{R}/work/stamps"
CHAIN = Chain(EXPERIMENT)
SHARDS = [f"{shard}of{EXPERIMENT.decoding.shards}" for shard in range(EXPERIMENT.decoding.shards)]
WHOLE = "0of1"


def leave_out_stamps():
    """Stamps put jobs in order and say nothing of results: let Snakemake not record or compare them as inputs."""
    listed = PersistenceBase._input
    PersistenceBase._input = lambda persistence, job: [
        path for path in listed(persistence, job) if not path.startswith(f"{STAMPS}/")
    ]


leave_out_stamps()


def everything():
    """All files that a report reads, and the scores of all cells."""
    read = [path for report in READY.values() for path in report.inputs(EXPERIMENT)]
    return [*read, *(cell.scores(R) for cell in ALL_CELLS)]


def made_again():
    """What `entropy-valley audit --repair` has deleted and this config makes: Snakemake itself would leave what only
    finished results were made from."""
    try:
        return repair.to_make_again(R, made_here)
    except errors.InputError as error:
        raise WorkflowError(str(error)) from None


def made_here():
    """The first file of each result that cells are made from, and all that reports read."""
    results = asked.behind(CHAIN.scores(cell) for cell in ALL_CELLS)
    return {*everything(), *(result.paths[0] for result in results)}


def read_by(path):
    """The files that the report of a path reads, or all reports for the document; none if it is no report's."""
    name = re.sub(r"(\.float)?\.\w+$", "", os.path.relpath(path, R))
    made = READY.values() if name == document.NAME else [REPORTS[name]] if name in REPORTS else []
    return [file for report in made for file in report.inputs(EXPERIMENT)]


@functools.cache
def asked_files():
    return asked.asked_files(targets(), everything, read_by)


@functools.cache
def asked_by_stamp():
    """The results that are asked for of models and metrics, by the place that their stamps have in a session; none
    without a store: then each job loads the model for itself."""
    found = {}
    for result in asked.behind(map(CHAIN.at, asked_files())) if EXPERIMENT.store else []:
        for place in places_of(result):
            found.setdefault(place, {})[result] = None  # looked up thousands of times
    return found


def places_of(result):
    """Where in a session's folder the stamps are that a job waits for so that it loads nothing."""
    of = result.wildcards
    if "score" == result.rule:  # so turned around because of Snakemake's linter
        return [f"comet/{of['direction']}/{of['testset']}"]
    if not asked.reads_model(CHAIN, result) or (SHARDS != [WHOLE] and "testset" not in of):
        return []  # what has no test set is made before the shards, which read it
    return [f"inference/{of['direction']}/{of['backbone']}/seed{of['seed']}.{shard}" for shard in SHARDS]


@functools.cache
def settled(result):
    """Whether Snakemake leaves a result as it is, as far as its params and the times of what it is made from go.

    What is missing is not made for its own sake.
    """
    newest = max((os.path.getmtime(path) for need in result.needs for path in there(need)), default=0)
    same = not there(result) or not result.spec or made_alike(result)
    older = any(os.path.getmtime(path) < newest for path in there(result))
    return same and not older and not forced(result) and all(map(settled, result.needs))


def forced(result):
    """Whether it is made again because a job of it was killed, or because the command line names its rule or a file."""
    if workflow.persistence._filter_incomplete_keys(result.paths):
        return True
    given = workflow.dag_settings
    again = {*given.forcerun, *(given.targets if given.forcetargets else ())}
    return given.forceall or not again.isdisjoint([result.rule, *result.paths])


def made_alike(result):
    """Whether a result was made by its present params: Snakemake knows, else the record beside it."""
    if made := workflow.persistence.metadata(IOFile(result.paths[0])):
        return repr(files.canonical(result.spec)) in (made.params or [])
    record = record_beside(result.paths[0])
    return record is None or record.matches(result.spec)


def there(result):
    return [path for path in result.paths if os.path.exists(path)]


@functools.cache
def finished(result):
    """Whether a job need not run. Jobs of this run take it from the process that started them."""
    if workflow.is_main_process:
        return len(there(result)) == len(result.paths) and settled(result)
    return result.paths[0] not in SESSION.unfinished


@functools.cache
def measured_by_references():
    """The test sets of each run for which canvases of their references' lengths are asked."""
    return asked.measured_by_references(CHAIN, asked.behind(map(CHAIN.at, asked_files())))


def unfinished():
    """The results that this run makes of what the models say, each by its first file."""
    results = dict.fromkeys(result for of_stamp in asked_by_stamp().values() for result in of_stamp)
    return [result.paths[0] for result in results if not finished(result)]


def stamps_of(output):
    """What the jobs with such an output wait for, so that they need no model; those of a finished one for nothing."""

    def stamps(wildcards):
        result = CHAIN.at(output.format(**dict(wildcards.items())))
        places = [] if finished(result) else places_of(result)
        waits = [place for place in places if result in asked_by_stamp().get(place, ())]
        return [ancient(f"{STAMPS}/{SESSION.id}/{place}") for place in waits]

    return stamps


@functools.cache
def checked_environment():
    """What a check is of: torch, the device, and the sizes of what runs on it."""
    return files.digest([driver.torch_build(), subject.of(EXPERIMENT)])[:16]


def check_before(output):
    """The check that a job on a GPU waits for. A job whose output is there waits for none: a check that must run again
    would else repeat it."""

    def stamp(wildcards):
        there = os.path.exists(output.format(**dict(wildcards.items())))
        if there or not (GPU and EXPERIMENT.check and workflow.is_main_process):
            return []
        return [ancient(f"{STAMPS}/check/{checked_environment()}")]

    return stamp


@functools.cache
def results_of_stamp(place):
    """The results whose jobs wait for a stamp."""
    return [result for result in asked_by_stamp().get(place, ()) if not finished(result)]


def results_of_shard(wildcards):
    run = f"{wildcards.direction}/{wildcards.backbone}/seed{wildcards.seed}"
    return results_of_stamp(f"inference/{run}.{wildcards.shard}")


def requests(wildcards):
    return [asked.request(result) for result in results_of_shard(wildcards)]


def sentences(wildcards):
    """The files of sentences that the jobs of a stamp read."""
    read = [path for one in requests(wildcards) for key in ("testset", "dev") if (path := one.get(key))]
    return list(dict.fromkeys(read))


def fitted(rule):
    """A file of the run that a method of a stamp's jobs needs, if it is not made by the job that leaves the stamp:
    what is finished is not, nor what shards share."""

    def path(wildcards):
        read = [result for result in asked.behind(results_of_shard(wildcards)) if result.rule == rule]
        return next((one.paths[0] for one in read if wildcards.shard != WHOLE or finished(one)), [])

    return path


def hypotheses_of_stamp(wildcards):
    """The hypotheses whose scores wait for a stamp."""
    place = f"comet/{wildcards.direction}/{wildcards.testset}"
    return [asked.hypotheses(result) for result in results_of_stamp(place)]
