"""Write the document of all tables and figures, or set it as PDF."""

from pathlib import Path

from entropy_valley.reporting import document
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    out = Path(job.output[0])
    if out.suffix == ".pdf":
        document.typeset(Path(job.input.tex), out)
    else:
        document.write([document.Item(*item) for item in job.spec["items"]], out)
