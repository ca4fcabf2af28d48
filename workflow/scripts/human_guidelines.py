"""Write the guidelines for the annotators of a pack, as Markdown and as PDF."""

from pathlib import Path

from entropy_valley import files
from entropy_valley.human_evaluation import guidelines, pdf
from entropy_valley.human_evaluation.pack import Pack
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    text = guidelines.text(Pack.read(Path(job.input[0])), snakemake.wildcards.language)  # noqa: F821
    files.write_text(job.output.md, text)
    pdf.write(Path(job.output.pdf), text)
