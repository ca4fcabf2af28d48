# What this machine lacks for a run: an error at its start, and a warning in a dry run.

import textwrap

from entropy_valley.checking import needs


def lacking():
    """What this machine lacks for the jobs of this run. Nothing is looked at with `check: false`."""
    if not EXPERIMENT.check or workflow.touch:
        return []
    jobs = list(workflow.dag.needrun_jobs())
    here = on_this_machine()
    gpu = errors.refusal(Machine.here().require_gpu) if here and any(job.resources.get("gpu") for job in jobs) else None
    planned = [needs.Job(job.rule.name, job.wildcards_dict, [*job.output, *job.log]) for job in jobs]
    try:
        found = needs.problems(EXPERIMENT, planned, workflow.cores if here else None)
    except errors.InputError as error:
        found = [str(error)]
    return [*([f"device: cuda: {gpu}"] if gpu else []), *found]


def require_what_is_needed():
    """End the run before its first job, with all that is lacking."""
    if problems := lacking():
        raise WorkflowError("\n".join([*problems, "With `check: false` the run starts all the same."]))


def warnings():
    """The same in a dry run, which may be on another machine than the run."""
    return [textwrap.fill(f"warning: {problem}", plan.WIDTH) + "\n" for problem in lacking()]
