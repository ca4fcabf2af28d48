"""Fine-tune one backbone on one direction with one seed; a killed run resumes. Or adopt a given adapter.

Rules: train, adopt_adapter.
"""

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from pathlib import Path

    from entropy_valley import files, results
    from entropy_valley.model.checkpoint import MANIFEST, checkpoint_digest
    from entropy_valley.training import adoption, sft
    from entropy_valley.training.card import write_card

    out, execution, rule = Path(job.output[0]), dict(job.execution), job.rule
    backbone, work = (Path(execution.pop(name)) for name in ("backbone", "work"))
    known = {backbone: checkpoint_digest(backbone)}
    if rule == "adopt_adapter":
        folder = execution["folder"] and Path(execution["folder"])
        with results.made(rule, job.params, job.input, job.output, known):
            adoption.adopt(job.spec, backbone, out.parent, work, folder, execution["confirm"])
    else:
        execution.pop("check", None)
        logs = Path(execution.pop("logs"))
        corpus = Path(job.input.corpus)
        trained = sft.Finetuning(job.spec, corpus, backbone, out.parent, work, logs, **execution)
        inputs = [corpus, *filter(Path.is_file, [backbone / MANIFEST])]
        with results.made(rule, job.params, inputs, job.output, known) as record:
            sft.run(trained, job.threads)
            if (run := logs / "run.json").is_file():
                record.facts["device"] = files.read_json(run)["device"]
    write_card(out.parent)
