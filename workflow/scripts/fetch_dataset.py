"""Download a data set of the Hugging Face hub, unless it is there, and keep which commit it is."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, provenance
    from entropy_valley.data import dataset

    (out,) = job.output
    with dataset.reading(None, job.how["confirm"]):
        found = dataset.fetched(job.spec["repository"], job.spec["revision"], Path(job.how["folder"]))
    with provenance.made("fetch_dataset", job.params, [], [out]):
        files.write_json(out, found)
