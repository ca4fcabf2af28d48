"""Make a table or figure, the page of a test set's sentences, or the document of all tables and figures.

Rules: table, comparison, figure, page, document, pdf.
"""

from pathlib import Path

from entropy_valley import tables
from entropy_valley.runs.job import job_of
from entropy_valley.tables import document, pages

with job_of(snakemake) as job:  # noqa: F821
    rule = snakemake.rule  # noqa: F821
    if rule == "page":
        pages.make_sentences(job.params, job.how, job.output[0])
    elif rule == "document":
        items = [document.Item(*item) for item in job.spec["items"]]
        document.write(items, job.spec["about"], Path(job.output[0]))
    elif rule == "pdf":
        document.typeset(Path(job.input.tex), Path(job.output[0]))
    else:
        tables.write(job.params, job.how, job.output)
