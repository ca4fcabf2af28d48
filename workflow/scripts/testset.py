"""Write the sentences of one test set for one direction."""

from entropy_valley.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    from entropy_valley import files, provenance
    from entropy_valley.data import build, dataset
    from entropy_valley.demo.source import SOURCES

    (out,) = job.output
    how = job.how
    inputs = [*build.own_files(job.spec, "test", kinds=SOURCES), *job.input.dataset]
    made = provenance.made("testset", job.params, inputs, [out])
    with dataset.reading(how["commits"], how["confirm"]), made as record:
        files.write_jsonl(out, build.testset(job.spec, SOURCES, how["folder"], how["rows"]))
        record.facts.update(build.origin(job.spec, "test", SOURCES, how["folder"]))
