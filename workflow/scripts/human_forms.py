"""Write the form of one annotator: empty, as a spreadsheet, CSV and a page; or filled in by a simulated annotator.

Rules: human_forms, human_simulated.
"""

from pathlib import Path

from entropy_valley.experiment.demo import annotators
from entropy_valley.experiment.human_evaluation import forms
from entropy_valley.experiment.human_evaluation.pack import Pack
from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    pack, annotator = Pack.read(job.input[0]), snakemake.wildcards.annotator  # noqa: F821
    if job.rule == "human_simulated":
        filled = annotators.ratings(pack, annotator, job.spec["seed"])
        forms.write_csv(Path(job.output[0]), pack, filled)
    else:
        forms.write_xlsx(Path(job.output.xlsx), pack, annotator)
        forms.write_csv(Path(job.output.csv), pack)
        forms.write_page(Path(job.output.html), pack, annotator)
