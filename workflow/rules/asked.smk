# What this run of Snakemake asks of the models, and the stamps that put the jobs that compute it before those that read
# it from the store.

import functools

from snakemake.io import IOFile
from snakemake.persistence import PersistenceBase

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
    read = [path for report in REPORTS.values() for path in report.inputs(EXPERIMENT)]
    return [*read, *(cell.scores(R) for cell in ALL_CELLS)]


def read_by(path):
    """The files that the report of a path reads; none if it is no report's."""
    made = REPORTS.get(os.path.splitext(os.path.relpath(path, R))[0])
    return made.inputs(EXPERIMENT) if made else []


@functools.cache
def asked_files():
    return asked.asked_files(targets(), everything, read_by)


@functools.cache
def model_jobs():
    """The jobs that read a model, by run; none without a store: then each loads the model for itself."""
    return asked.model_jobs(EXPERIMENT, asked_files()) if EXPERIMENT.store else {}


@functools.cache
def scored_cells():
    """The cells that are asked for, by direction and test set."""
    cells = {}
    for cell in asked.scored_cells(EXPERIMENT, asked_files()) if EXPERIMENT.store else []:
        cells.setdefault((cell.run.direction, cell.testset), {})[cell] = None  # looked up thousands of times
    return cells


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


def unfinished():
    """The results that this run makes of what the models say, each by its first file."""
    results = [job.result(CHAIN) for of_run in model_jobs().values() for job in of_run]
    results += [CHAIN.scores(cell) for cells in scored_cells().values() for cell in cells]
    return [result.paths[0] for result in results if not finished(result)]


@functools.cache
def stamps_of(job):
    """The stamps that a job waits for which reads a model; none where it is to load the model itself."""
    alone = SHARDS != [WHOLE] and not job.testset  # made before the shards, which read it
    if alone or job not in model_jobs().get(job.run, []) or finished(job.result(CHAIN)):
        return []
    folder = job.run.folder(f"{STAMPS}/{SESSION.id}/inference")
    return [f"{folder}.{shard}" for shard in SHARDS]


def inferred(rule):
    """What a rule's jobs wait for, so that they need no model."""

    def stamps(wildcards):
        named = {key: wildcards.get(key, "") for key in ("testset", "method", "order")}
        job = asked.ModelJob(rule, run_of(wildcards), **named, steps=int(wildcards.get("steps", 0)))
        needed = rule != "canvas" or methods.canvas_needs_model(EXPERIMENT, job.method)
        return [ancient(path) for path in stamps_of(job)] if needed else []

    return stamps


def jobs_of_stamp(wildcards):
    """The jobs that wait for a stamp of a run's model."""
    stamp = f"{run_of(wildcards).folder(f'{STAMPS}/{SESSION.id}/inference')}.{wildcards.shard}"
    return [job for job in model_jobs().get(run_of(wildcards), []) if stamp in stamps_of(job)]


def requests(wildcards):
    return [asked.request(CHAIN, job) for job in jobs_of_stamp(wildcards)]


def sentences(wildcards):
    """The files of sentences that the jobs of a stamp read."""
    read = [path for one in requests(wildcards) for key in ("testset", "dev") if (path := one.get(key))]
    return list(dict.fromkeys(read))


def of_methods(name, needs):
    """A file of the run that shards read, if a method of theirs needs it; one job alone makes it for itself."""

    def path(wildcards):
        methods_asked = {job.method for job in jobs_of_stamp(wildcards) if job.method and wildcards.shard != WHOLE}
        needed = any(needs(EXPERIMENT, method) for method in methods_asked)
        return f"{run_of(wildcards).folder(R)}/{name}" if needed else []

    return path


@functools.cache
def cell_stamps(cell):
    """The stamp that the scores of a cell wait for; none where their job is to load the metrics itself."""
    place = (cell.run.direction, cell.testset)
    waits = cell in scored_cells().get(place, []) and not finished(CHAIN.scores(cell))
    return [f"{STAMPS}/{SESSION.id}/comet/{'/'.join(place)}"] if waits else []


def scored(wildcards):
    """What the scores of a cell wait for, so that they need no COMET."""
    cell = asked.cell_of(run_of(wildcards), wildcards.testset, wildcards.system)
    return [ancient(path) for path in cell_stamps(cell)]


def hypotheses_of_stamp(wildcards):
    """The hypotheses whose scores wait for a stamp."""
    place = (wildcards.direction, wildcards.testset)
    stamp = f"{STAMPS}/{SESSION.id}/comet/{'/'.join(place)}"
    cells = [cell for cell in scored_cells().get(place, []) if stamp in cell_stamps(cell)]
    return [CHAIN.hypotheses(cell).paths[0] for cell in cells]
