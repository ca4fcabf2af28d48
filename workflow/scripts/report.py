"""Make a table or figure, the page of a test set's sentences, the live page, or the document of all tables and figures.

Rules: table, comparison, figure, page, live, document, pdf.
"""

from pathlib import Path

from entropy_valley import tables
from entropy_valley.config import load_merged
from entropy_valley.runs.job import job_of
from entropy_valley.tables import document, live, pages

with job_of(snakemake) as job:  # noqa: F821
    experiment = load_merged(snakemake.config, further=tables.problems)  # noqa: F821
    wildcards = snakemake.wildcards  # noqa: F821
    if job.rule == "page":
        pages.write(experiment, (wildcards.direction, wildcards.testset), job.output[0], job.input)
    elif job.rule == "live":
        live.write(experiment, job.output[0], job.input)
    elif job.rule == "document":
        document.write(experiment, tables.configured(experiment), Path(job.output[0]))
    elif job.rule == "pdf":
        document.typeset(Path(job.input.tex), Path(job.output[0]))
    else:
        folder, file = Path(job.output[0]).parts[-2:]
        report = tables.configured(experiment)[f"{folder}/{file.partition('.')[0]}"]
        tables.write(report, job.output[: len(report.endings)], job.input)
