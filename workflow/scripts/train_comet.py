"""Train the toy COMET on corrupted references, check it on held-out ones, and write it as COMET does."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import folders, provenance
    from entropy_valley.demo import toy_comet_training

    (out,) = map(Path, job.output)
    record = provenance.made("train_comet", job.params, job.input, [out], whole_folder=True)
    with folders.locked(out.parent), record:  # of two runs one works, and the other finds its work
        toy_comet_training.make(job.spec, job.input.train, job.input.dev, out.parent)
