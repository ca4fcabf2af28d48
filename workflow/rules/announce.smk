# The first lines of a run: its config, what it will cost, and what it would download. Large downloads are asked for.

import sys

from entropy_valley.experiment import profile
from entropy_valley.forecast import downloads
from entropy_valley.forecast.forecast import Forecast
from entropy_valley.reporting import forecast as reported


def on_this_machine():
    """Whether jobs run here, and not on a cluster. The second one is a cluster's, in a dry run."""
    return workflow.local_exec and not workflow.resource_settings.nodes


def planned_downloads():
    """What the jobs of this run would download that is not there."""
    jobs = workflow.dag.needrun_jobs()
    return downloads.downloads(EXPERIMENT, ((job.rule.name, job.wildcards_dict) for job in jobs))


def planned_results():
    """The results of jobs that run a model, and of all that these are made from, as far as they are made in this run."""
    jobs = list(workflow.dag.needrun_jobs())
    outputs = {path for job in jobs for path in job.output}
    pretrained = [CHAIN.backbone(job.wildcards.backbone) for job in jobs if job.rule.name == "pretrain"]
    needed = asked.behind([*pretrained, *map(CHAIN.at, outputs)])
    return {result: None for result in needed if result.paths[0] in outputs}


def announcement():
    """The first lines: which config, of what, what it will cost."""
    results = planned_results()
    cores = workflow.cores if on_this_machine() else None
    return "\n".join(reported.first_lines(Forecast(EXPERIMENT, results, results), planned_downloads(), FILES, cores))


def require(check, *arguments):
    """End the run with the error of a check."""
    try:
        check(*arguments)
    except errors.InputError as error:
        raise WorkflowError(str(error)) from None


def confirm_downloads():
    """End the run where it would download much, and nobody has agreed."""
    if not workflow.touch:
        require(downloads.require_agreement, EXPERIMENT, planned_downloads())


if workflow.is_main_process:
    require(profile.require, sys.argv[1:], workflow.basedir)
