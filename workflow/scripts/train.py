"""Fine-tune one backbone on one direction with one seed; a killed run resumes."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import provenance
    from entropy_valley.model.adapters import write_card
    from entropy_valley.model.checkpoint import MANIFEST, checkpoint_digest
    from entropy_valley.training import sft

    (out,) = map(Path, job.output)
    how = {name: value for name, value in job.how.items() if name != "check"}
    folders = {name: Path(how.pop(name)) for name in ("backbone", "work", "logs")}
    tested = list(filter(Path.is_file, map(Path, how.pop("tested"))))
    trained = sft.Job(spec=job.spec, corpus=Path(job.input.corpus), out=out.parent, tested=tested, **folders, **how)
    inputs = [trained.corpus, *filter(Path.is_file, [trained.backbone / MANIFEST])]
    known = {trained.backbone: checkpoint_digest(trained.backbone)}
    with provenance.made("train", job.params, inputs, [out], known=known, whole_folder=True):
        sft.run(trained, job.threads)
    write_card(out.parent)  # behind the record: it may be edited
