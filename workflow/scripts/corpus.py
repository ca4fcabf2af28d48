"""Write the training and dev pairs of one direction, and a report."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from contextlib import nullcontext
    from pathlib import Path

    from entropy_valley import files, provenance
    from entropy_valley.data import build, dataset
    from entropy_valley.data import build as shared
    from entropy_valley.demo.source import SOURCES

    how, out = job.how, job.output

    def drawn():
        if how["both_ways"]:
            return shared.shared_corpus(job.params, SOURCES, Path(out.report), how["rows"])
        return nullcontext(build.corpus(job.spec, SOURCES, how["folder"], how["rows"]))

    inputs = [*build.own_files(job.spec, "train", "dev", kinds=SOURCES), *job.input.dataset]
    made = provenance.made("corpus", job.params, inputs, out)
    with dataset.reading(how["commits"], how["confirm"]), made as record, drawn() as (train, dev, report, facts):
        record.facts.update(facts)
        files.write_jsonl(out.train, train)
        files.write_jsonl(out.dev, dev)
        files.write_json(out.report, report)
