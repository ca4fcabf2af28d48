"""Train the demo's own models: a tiny backbone on the train splits, or the toy COMET on corrupted references.

Rules: pretrain, train_comet.
"""

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, results
    from entropy_valley.training import processes

    out = Path(job.output[0])
    rule, execution = job.rule, job.execution
    record = results.made(rule, job.params, job.input, job.output)
    with files.locked(out.parent), record:  # of two runs one works, and the other finds its work
        if rule == "pretrain":
            from entropy_valley.experiment.demo import pretraining

            named = (
                zip(execution["directions"], map(Path, paths), strict=True)
                for paths in (job.input.train, job.input.dev)
            )
            train, dev = map(dict, named)
            paths_of = {name: Path(execution[name]) for name in ("work", "logs")}
            processes.use_threads(job.threads)
            pretraining.pretrain(
                pretraining.PretrainingJob(
                    job.spec, train, dev, out.parent, **paths_of, checkpoint_every=execution["checkpoint_every"]
                )
            )
        else:
            from entropy_valley.experiment.demo import toy_comet

            toy_comet.make(job.spec, job.input.train, job.input.dev, out.parent)
