# What Snakemake prints: a plan in a screenful, and jobs without their pages of files; of many jobs on this machine, only
# how far they are; at the end of a run that fails, the error of each job. The log file under .snakemake/log has all of
# it, as has the terminal with --printshellcmds (-p), --verbose or --quiet …: there the user has chosen.

import time
from functools import partial

from snakemake.logging import DefaultFormatter, logger
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from entropy_valley import launch
from entropy_valley.experiment import failures, plan, screen
from entropy_valley.reporting import changes
from entropy_valley.spelling import nearest

NOTHING_RUN = "A dry run: nothing was run. For the files and the command of each job, add -p: snakemake -n -p"


class Brief(DefaultFormatter):
    """Snakemake's words, but for the plan, the lists of files and the commands of jobs that fail."""

    def __init__(self, workflow):
        # What few jobs on this machine say is on the terminal already.
        show_logs = workflow.output_settings.show_failed_logs and not workflow.local_exec
        super().__init__(workflow.output_settings.quiet, show_logs)
        self.workflow, self.dry, self.reasons = workflow, workflow.output_settings.dryrun, {}
        self.progress = screen.Progress(count_jobs, self.of_many_jobs, say_how_far)

    def of_many_jobs(self):
        """What jobs say goes into their logs alone. That of a job which fails is shown."""
        os.environ[launch.IN_LOGS], self.show_failed_logs = "1", True
        if not self.dry:
            self.progress.watch()

    def format_workflow_started(self, msg):
        return "" if self.dry or self.workflow.local_exec else super().format_workflow_started(msg)

    def format_run_info(self, msg):
        """The jobs, in the place of Snakemake's table of them."""
        dag, rules = self.workflow.dag, [rule.name for rule in self.workflow.rules]
        jobs = sorted(dag.needrun_jobs(), key=lambda job: (rules.index(job.rule.name), dag.jobid(job)))
        self.reasons = {dag.jobid(job): self.why(job) for job in jobs}
        text = plan.summary([self.planned(job) for job in jobs])
        if self.workflow.is_main_process:  # and not a job of a cluster
            text = f"{announcement()}\n{text}"
        return "\n".join([text, *warnings(), NOTHING_RUN]) if self.dry else text

    def format_job_info(self, msg):
        reason = self.reasons.get(msg["jobid"]) or "input made by other jobs"
        return super().format_job_info({**msg, **few_files(msg), "reason": reason})

    def format_job_error(self, msg):
        """Without the command: what it has said is below."""
        return super().format_job_error({**msg, **few_files(msg), "msg": msg["rule_msg"], "shellcmd": None})

    def format(self, record):
        """Without the exception of a command that has failed: Snakemake tells it once more, as the job's error. And
        without the errors of jobs that Ctrl-C has stopped."""
        told = getattr(record, "exception", None) == "RuleException" and "CalledProcessError" in record.msg
        stopped = failed.stopped and getattr(record, "event", None) is LogEvent.JOB_ERROR
        return "" if told or stopped else super().format(record)

    def format_progress(self, msg):
        return f"[{time.strftime('%H:%M:%S')}] {super().format_progress(msg)}{self.progress.running()}"

    def why(self, job):
        said = partial(changes.reasons, EXPERIMENT, job.rule.name, job.wildcards_dict, most=2)
        return plan.why(self.workflow.dag.reason(job), job.temp_output, said)

    def planned(self, job):
        dag = self.workflow.dag
        after = tuple(earlier.rule.name for earlier in dag.dependencies[job] if dag.needrun(earlier))
        return plan.Job(job.rule.name, screen.shown(job.wildcards_dict), self.reasons[dag.jobid(job)], after)


def few_files(msg):
    return {key: [plan.files(msg[key])] for key in ("input", "output") if msg[key]}


def near(target):
    """The targets that a mistyped one may mean."""
    named = nearest(target, [rule.name for rule in workflow.rules if not rule.has_wildcards()])
    reported = [f"{path}.{ending}" for path, report in REPORTS.items() for ending in report.endings]
    results = [os.path.relpath(path, R) for path in sorted(made_here())]
    return [*named, *(f"{R}/{path}" for path in failures.nearest_paths(target, [*reported, *results]))]


def count_jobs():
    return sum(1 for _ in workflow.dag.needrun_jobs())


def say_how_far(done, total):
    logger.info(None, extra={"event": LogEvent.PROGRESS, "done": done, "total": total, "due": True})


failed = failures.Failures(near)

if not (workflow.output_settings.printshellcmds or workflow.output_settings.verbose or workflow.output_settings.quiet):
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            brief = Brief(workflow)
            handler.setFormatter(brief)
            if workflow.is_main_process and workflow.local_exec and workflow.output_settings.show_failed_logs:
                handler.addFilter(brief.progress)
    if workflow.output_settings.dryrun:  # it ends with its plan, as with --quiet: listing each job takes as long again
        workflow.output_settings.quiet = {Quietness.RULES, Quietness.PROGRESS}

if workflow.is_main_process:
    logger.addFilter(failed)
