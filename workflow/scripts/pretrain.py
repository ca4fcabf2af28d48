"""Pre-train a tiny backbone on the train splits (demo only); a killed run resumes."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import folders, provenance
    from entropy_valley.demo import pretraining
    from entropy_valley.training import processes

    (out,) = map(Path, job.output)
    how = job.how
    named = (zip(how["directions"], map(Path, paths), strict=True) for paths in (job.input.train, job.input.dev))
    train, dev = map(dict, named)
    pretrained = pretraining.Job(
        spec=job.spec,
        corpora=train,
        dev=dev,
        out=out.parent,
        work=Path(how["work"]),
        logs=Path(how["logs"]),
        checkpoint_every=how["checkpoint_every"],
    )
    processes.use_threads(job.threads)
    record = provenance.made("pretrain", job.params, job.input, [out], whole_folder=True)
    with folders.locked(out.parent), record:  # of two runs one works, and the other finds its work
        pretraining.pretrain(pretrained)
