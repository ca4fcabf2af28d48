"""Download a backbone, a COMET checkpoint or a data set, unless it is there; check it, and keep which one it is.

Rules: fetch_backbone, fetch_comet, fetch_dataset.
"""

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, results

    out, execution, rule, known = job.output[0], job.execution, job.rule, {}
    folder = Path(execution["folder"])
    if rule == "fetch_backbone":
        from entropy_valley.model import load

        facts = load.fetch(job.spec, folder, execution["own"], execution["confirm"])
        known = {folder: facts["digest"]}
    elif rule == "fetch_comet":
        from entropy_valley.scoring import comet_checkpoint

        facts = comet_checkpoint.fetched(
            **job.spec, folder=folder, metric=execution["metric"], agreed=execution["confirm"]
        )
    else:
        from entropy_valley.data import dataset

        facts = dataset.fetched(dataset.HubFiles(**job.spec), folder, execution["confirm"])
    with results.made(rule, job.params, [], [out], known):
        files.write_json(out, facts)
