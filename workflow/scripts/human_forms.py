"""Write the form of one annotator: a spreadsheet, the same as CSV, and a page to fill it in on."""

from pathlib import Path

from entropy_valley.human_evaluation import forms, page
from entropy_valley.human_evaluation.pack import Pack
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    pack, annotator = Pack.read(Path(job.input[0])), snakemake.wildcards.annotator  # noqa: F821
    forms.write_xlsx(Path(job.output.xlsx), pack, annotator)
    forms.write_csv(Path(job.output.csv), pack)
    page.write(Path(job.output.html), pack, annotator)
