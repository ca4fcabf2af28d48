"""Make a table or figure, the page of a test set's sentences, the live page, or the document of all tables and figures.

Rules: table, comparison, figure, page, live, document.
"""

from entropy_valley.experiment import tables
from entropy_valley.experiment.config import load_merged
from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    tables.make(load_merged(snakemake.config), job.output)  # noqa: F821
