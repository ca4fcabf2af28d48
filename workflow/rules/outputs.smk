# What Snakemake does when a job fails: nothing. Scripts write whole files or none, so what is there is finished.
#
# For outputs in `update(…)`, Snakemake itself would copy them before the job and copy them back when it fails. It then
# records the old file as made with the new params, so that nothing plans the job again. On a cluster it deletes the
# old file. And where a run was killed, its copy of a folder makes all later jobs of that folder fail.

from snakemake.jobs import Job
from snakemake.persistence import FileBackupMixin


def keep_outputs():
    """Let a failed job leave what a killed one leaves: its outputs as they were, marked as incomplete."""
    finish = Job.postprocess

    async def postprocess(job, *arguments, error=False, **options):
        if error:
            job.dag.workflow.persistence.started(job)
        else:
            await finish(job, *arguments, **options)

    Job.postprocess = postprocess
    FileBackupMixin.backup_output = lambda persistence, path: None


if not getattr(Job, "keeps_outputs", False):
    Job.keeps_outputs = True
    keep_outputs()
