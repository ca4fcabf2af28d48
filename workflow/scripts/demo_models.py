"""Train the demo's own models: a tiny backbone on the train splits, or the toy COMET on corrupted references.

Rules: pretrain, train_comet.
"""

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, results
    from entropy_valley.training import processes

    out, read, execution = Path(job.output[0]), job.input, job.execution

    def pretrain():
        from entropy_valley.experiment.demo import pretraining

        train, dev = (
            dict(zip(execution["directions"], map(Path, paths), strict=True)) for paths in (read.train, read.dev)
        )
        paths_of = {name: Path(execution[name]) for name in ("work", "logs")}
        processes.use_threads(job.threads)
        every = execution["checkpoint_every"]
        model = pretraining.PretrainingJob(job.spec, train, dev, out.parent, **paths_of, checkpoint_every=every)
        pretraining.pretrain(model)

    def train_comet():
        from entropy_valley.experiment.demo import toy_comet

        toy_comet.make(job.spec, read.train, read.dev, out.parent)

    with files.locked(out.parent):  # of two runs one works, and the other finds its work
        finished = results.read_record(results.record_path(out))
        if finished is None or finished.params != job.params:
            with results.made(job.rule, job.params, read, job.output):
                pretrain() if job.rule == "pretrain" else train_comet()
