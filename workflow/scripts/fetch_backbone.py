"""Download a released checkpoint unless its folder exists, check it, and write its manifest."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, provenance
    from entropy_valley.model import load

    (out,) = job.output
    folder = Path(job.how["folder"])
    manifest = load.fetch(job.spec, folder, job.how["own"], job.how["confirm"])
    with provenance.made("fetch_backbone", job.params, [], [out], known={folder: manifest["digest"]}):
        files.write_json(out, manifest)
