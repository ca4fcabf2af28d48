"""Set the document of all tables and figures by pdflatex, whose words are in the log. Rule: pdf."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job, tempfile.TemporaryDirectory() as work:  # noqa: F821
    source = Path(job.input.tex)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={work}", source.name]
    # In the folder of results, whose files the document names. The second time, the pages of its contents are known.
    for _ in range(2):
        subprocess.run(command, cwd=source.parent, check=True)
    shutil.copyfile(Path(work, f"{source.stem}.pdf"), job.output[0])
