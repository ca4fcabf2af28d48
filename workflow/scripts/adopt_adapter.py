"""Adopt a given adapter instead of training: a folder or hub repository in PEFT's layout."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import provenance
    from entropy_valley.model.adapters import write_card
    from entropy_valley.model.checkpoint import checkpoint_digest
    from entropy_valley.training import adapter

    (out,) = map(Path, job.output)
    how = job.how
    adopted = adapter.Job(
        spec=job.spec,
        backbone=Path(how["backbone"]),
        out=out.parent,
        work=Path(how["work"]),
        folder=how["folder"] and Path(how["folder"]),
        agreed=how["confirm"],
    )
    known = {adopted.backbone: checkpoint_digest(adopted.backbone)}
    with provenance.made("adopt_adapter", job.params, [], [out], known=known, whole_folder=True):
        adapter.adopt(adopted)
    write_card(out.parent)  # behind the record: it may be edited
