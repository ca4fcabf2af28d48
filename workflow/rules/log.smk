# What Snakemake prints: a plan in a screenful, and jobs without their pages of files. The log file under .snakemake/log
# has all of it, as has the terminal with --printshellcmds (-p), --verbose or --quiet …: there the user has chosen.

from snakemake.logging import DefaultFormatter, logger
from snakemake.settings.enums import Quietness

from entropy_valley.experiment import plan

NOTHING_RUN = "A dry run: nothing was run. For the files and the command of each job, add -p: snakemake -n -p"


class Brief(DefaultFormatter):
    """Snakemake's words, but for the plan and the lists of files. Errors stay whole."""

    def __init__(self, workflow):
        super().__init__(workflow.output_settings.quiet, workflow.output_settings.show_failed_logs)
        self.workflow, self.dry, self.reasons = workflow, workflow.output_settings.dryrun, {}

    def format_workflow_started(self, msg):
        return "" if self.dry else super().format_workflow_started(msg)

    def format_run_info(self, msg):
        """The jobs, in the place of Snakemake's table of them."""
        dag, rules = self.workflow.dag, [rule.name for rule in self.workflow.rules]
        jobs = sorted(dag.needrun_jobs(), key=lambda job: (rules.index(job.rule.name), dag.jobid(job)))
        self.reasons = {dag.jobid(job): plan.why(dag.reason(job)) for job in jobs}
        text = plan.summary([self.planned(job) for job in jobs])
        return "\n".join([text, *warnings(), NOTHING_RUN]) if self.dry else text

    def format_job_info(self, msg):
        brief = {key: [plan.files(msg[key])] for key in ("input", "output") if msg[key]}
        reason = self.reasons.get(msg["jobid"]) or "input made by other jobs"
        return super().format_job_info({**msg, **brief, "reason": reason})

    def planned(self, job):
        dag = self.workflow.dag
        after = tuple(earlier.rule.name for earlier in dag.dependencies[job] if dag.needrun(earlier))
        wildcards = job.wildcards_dict
        shown = {
            name: value
            for name, value in wildcards.items()
            if name not in ("session", "environment") and value != "0of1"
        }
        return plan.Job(job.rule.name, shown, self.reasons[dag.jobid(job)], after)


if not (workflow.output_settings.printshellcmds or workflow.output_settings.verbose or workflow.output_settings.quiet):
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.setFormatter(Brief(workflow))
    if workflow.output_settings.dryrun:  # it ends with its plan, as with --quiet: listing each job takes as long again
        workflow.output_settings.quiet = {Quietness.RULES, Quietness.PROGRESS}
