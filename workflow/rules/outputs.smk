# What Snakemake does when a job fails: nothing. Scripts write whole files or none, so what is there is finished.
#
# For outputs in `update(…)`, Snakemake itself would copy them before the job and copy them back when it fails. It then
# records the old file as made with the new params, so that nothing plans the job again. On a cluster it deletes the
# old file. And where a run was killed, its copy of a folder makes all later jobs of that folder fail.

import functools
import re

from snakemake.io import IOFile
from snakemake.jobs import Job
from snakemake.persistence import FileBackupMixin, ParamsChange, PersistenceBase

from entropy_valley import provenance

TICK = 0.01  # seconds: a file's time is that of the kernel's last tick, which is before the clock's
# Folders that were outputs in the version before, and the file that now is the output instead.
STANDS_FOR = {
    r".+/seed\d+/adapter": adapters.FACTS,
    r".+/backbones/[^/]+(?<!\.json)": checkpoint.MANIFEST,
    r".+/comet": "comet.json",
}


def keep_outputs():
    """Let a failed job leave its outputs as they were. Those that it has begun to replace are marked as incomplete, as
    a killed job's are."""
    finish = Job.postprocess

    async def postprocess(job, *arguments, error=False, **options):
        if error:
            unmark_untouched(job, job.dag.workflow.persistence)
        else:
            await finish(job, *arguments, **options)

    Job.postprocess = postprocess
    FileBackupMixin.backup_output = lambda persistence, path: None


def unmark_untouched(job, persistence):
    """Snakemake marks all outputs of a job when it starts, and repeats a job with a mark, and all that follows it."""
    for path in map(IOFile, job.output):
        began = persistence._get_recorded_starttime(str(path))
        if began and not (os.path.exists(path) and os.path.getmtime(path) >= began - TICK):
            persistence._unmark_incomplete(str(path))


def read_records_of_folders():
    """Let Snakemake's record of a folder hold for the file that stands for it: results of the version before stay
    valid, and a change of params still repeats them."""
    read = PersistenceBase.metadata

    def metadata(persistence, target):
        record = read(persistence, target) or read(persistence, IOFile(os.path.dirname(target)))
        if record and any(map(now_called, record.input or [])):
            record = record.model_copy(update={"input": sorted(now_called(path) or path for path in record.input)})
        return record

    PersistenceBase.metadata = metadata


@functools.cache
def now_called(path):
    """The file that stands for a folder that was an input before; else None."""
    files = [f"{path}/{name}" for pattern, name in STANDS_FOR.items() if re.fullmatch(pattern, path)]
    return files[0] if files else None


def compare_with_records_beside_results():
    """Where Snakemake's own records are lost (`.snakemake` deleted, results copied), the record beside a result says by
    which params it was made."""
    known, changed = PersistenceBase.has_metadata, PersistenceBase.params_changed

    def has_metadata(persistence, job):
        return known(persistence, job) or bool(job.output and record_beside(job.output[0]))

    def params_changed(persistence, job, file=None):
        if known(persistence, job) or not (record := record_beside(job.output[0])):
            return changed(persistence, job, file)
        now = next((param for param in job.params if isinstance(param, paths.ParamsFile)), None)
        if now is None or record.matches(now.text):
            return ParamsChange()
        return ParamsChange(frozenset([repr(record.text)]), frozenset([repr(now.text)]), frozenset(job.output[:1]))

    PersistenceBase.has_metadata, PersistenceBase.params_changed = has_metadata, params_changed


def record_beside(path):
    """The record of a job, by its first output; None without one."""
    try:
        record = provenance.read_record(provenance.record_path(path))
    except errors.InputError as error:
        raise WorkflowError(str(error)) from None
    return record if record and os.path.basename(path) in record.outputs else None


if not getattr(Job, "keeps_outputs", False):  # once in a process, however many Snakefiles it reads
    Job.keeps_outputs = True
    keep_outputs()
    read_records_of_folders()
    compare_with_records_beside_results()
