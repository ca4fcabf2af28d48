# Before anything is submitted to SLURM: does the cluster grant what the jobs request?

import dataclasses
import functools
import logging
import re
import shlex
from pathlib import Path

from snakemake.dag import DAG
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from entropy_valley.experiment.slurm import preflight, requests as slurm_requests, site as slurm_site

QUIET = logging.Logger("partitions", logging.CRITICAL)  # the plugin tells its choice again when it submits


def check_each_group_once():
    """Let Snakemake check each group of jobs once, not once for each of its jobs: minutes for ten times the matrix."""
    check = DAG._check_groups

    def once(dag):
        by_job = dag._group
        dag._group = {group: group for group in by_job.values()}
        try:
            check(dag)
        finally:
            dag._group = by_job

    DAG._check_groups = once


if not getattr(DAG, "checks_each_group_once", False):
    DAG.checks_each_group_once = True
    check_each_group_once()


def slurm_preflight():
    """End the run with one clear error instead of jobs that wait for ever. Nothing for other executors."""
    if workflow.executor_plugin.name != "slurm":
        return
    settings = workflow.executor_settings
    try:
        site = slurm_site.look_up()
        first_poll = settings.init_seconds_before_status_checks
        settings.status_command = preflight.status_command(site, settings.status_command, first_poll)
        asked = slurm_requested(site)
        preflight.check(site, asked, lambda request: preflight.refusal(submission(asked[request], request)))
        preflight.check_arrays(re.findall(r"\w+", settings.array_jobs or ""), asked)
    except errors.InputError as error:
        raise WorkflowError(str(error)) from None
    report_failed_submissions()
    report_cancelled_jobs()


def slurm_requested(site):
    """A job for each different request of this run, in all attempts."""
    groups = dict.fromkeys(workflow.dag._group.values())
    alone = [job for job in workflow.dag.needrun_jobs() if job.group is None and not job.is_local]
    first = {}
    for job in (*alone, *groups):
        first.setdefault(slurm_request(job, site), job)
    return {request: job for job in first.values() for request in attempts(job, site)}


def attempts(job, site):
    """What a job requests in its first attempt, and in those that request something else than the one before."""
    found = []
    for attempt in range(1, job.restart_times + 2):
        job.attempt = attempt
        request = slurm_request(job, site)
        if not found or dataclasses.replace(request, attempt=found[-1].attempt) != found[-1]:
            found.append(request)
    job.attempt = 1
    return found


def slurm_request(job, site):
    """What the plugin would request for a job."""
    from snakemake_executor_plugin_slurm import partitions

    asked = job.resources
    gpus, model = partitions.parse_gpu_requirements(job)
    cpus, per = partitions.get_job_cpu_requirement(job)
    cpus = cpus * gpus if per == "gpu" else cpus
    return slurm_requests.Request(
        " ".join(dict.fromkeys(one.rule.name for one in job.jobs)) if job.is_group() else job.rule.name,
        partition_of(job, site),
        asked.get("runtime", 0),
        asked.get("mem_mb_per_cpu", 0) * cpus or asked.get("mem_mb", 0),
        cpus,
        gpus,
        str(model or asked.get("gpu_model") or ""),
        str(asked.get("constraint") or ""),
        str(asked.get("qos") or workflow.executor_settings.qos or ""),
        str(asked.get("slurm_account") or ""),
        job.attempt,
        job.is_group(),
    )


def partition_of(job, site):
    """The partition that the plugin would choose; None if none of the profile's takes the job."""
    from snakemake_executor_plugin_slurm import partitions

    if named := job.resources.get("slurm_partition"):
        return str(named)
    if listed := slurm_partitions():
        return partitions.get_best_partition(listed, job, QUIET)
    return site.default_partition or ""


@functools.cache
def slurm_partitions():
    from snakemake_executor_plugin_slurm import partitions

    path = workflow.executor_settings.partition_config or os.getenv("SNAKEMAKE_SLURM_PARTITIONS")
    return partitions.read_partition_file(Path(path)) if path else []


def submission(job, request):
    """The plugin's own command for a job."""
    from snakemake_executor_plugin_slurm import get_submit_command, set_gres_string

    account = f" -A {shlex.quote(request.account)}" if request.account else ""
    partition = f" -p {shlex.quote(request.partition)}" if request.partition else ""
    given = dict(run_uuid="preflight", slurm_logfile=os.devnull, comment_str="", account=account, partition=partition)
    given["workdir"] = workflow.workdir_init
    job.attempt = request.attempt
    command = get_submit_command(job, given, settings=workflow.executor_settings) + set_gres_string(job)
    job.attempt = 1
    return shlex.split(command)


def report_failed_submissions():
    """Let a job fail that cannot be submitted, so that it is tried again: Snakemake would not hear of it and wait."""
    from snakemake_executor_plugin_slurm import Executor

    submit = Executor.run_job

    def run_job(executor, job):
        try:
            submit(executor, job)
        except Exception as error:
            executor._report_job_error_threadsafe(SubmittedJobInfo(job), f"not submitted to SLURM: {error}")

    Executor.run_job = run_job


def report_cancelled_jobs():
    """Let a job fail that somebody has cancelled: sacct says ``CANCELLED by 1000`` of it, for which the plugin waits."""
    import snakemake_executor_plugin_slurm as plugin

    query = plugin.query_job_status

    async def query_job_status(command, logger):
        states, seconds = await query(command, logger)
        return states and {job: state.partition(" ")[0] for job, state in states.items()}, seconds

    plugin.query_job_status = query_job_status
