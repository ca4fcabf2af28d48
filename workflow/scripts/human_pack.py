"""Choose the sentences of a pack, hide which system is which, and write the guidelines for its annotators.

Rule: human_pack.
"""

from entropy_valley import files, provenance
from entropy_valley.human_evaluation import forms
from entropy_valley.human_evaluation.pack import LANGUAGES, write_pack
from entropy_valley.runs.job import job_of

with job_of(snakemake) as job, provenance.made("human_pack", job.params, job.input, job.output):  # noqa: F821
    pack = write_pack(job.params, job.how, job.input[0], job.output.pack, job.output.mapping)
    for language, path in zip(LANGUAGES, job.output.guidelines, strict=True):
        files.write_text(path, forms.guidelines(pack, language))
