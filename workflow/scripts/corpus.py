"""Write the training and dev pairs of a direction, one of its test sets, or how far the two overlap.

Rules: corpus, testset, dev_as_testset, overlap.
"""

from entropy_valley.experiment.runs.job import job_of

with job_of(snakemake) as job:  # noqa: F821
    import shutil

    from entropy_valley import errors, files, results
    from entropy_valley.data import build
    from entropy_valley.data.build import overlap
    from entropy_valley.experiment.demo.grammar import SOURCES

    def write_corpus(execution, out):
        inputs = [*build.own_files(job.spec, "train", "dev", kinds=SOURCES), *job.input.dataset]
        with results.made("corpus", job.params, inputs, out) as record:
            train, dev, report, facts = build.corpus(job.spec, SOURCES, execution["folder"], execution["rows"])
            record.facts.update(facts)
            files.write_jsonl(out.train, train)
            files.write_jsonl(out.dev, dev)
            files.write_json(out.report, report)

    def write_testset(execution, out):
        inputs = [*build.own_files(job.spec, "test", kinds=SOURCES), *job.input.dataset]
        with results.made("testset", job.params, inputs, [out]) as record:
            files.write_jsonl(out, build.testset(job.spec, SOURCES, execution["folder"], execution["rows"]))
            record.facts.update(build.origin(job.spec, "test", kinds=SOURCES, folder=execution["folder"]))

    def copy(read, out):
        with results.made("dev_as_testset", job.params, [read], [out]):
            shutil.copyfile(read, out)

    def write_overlap(read, out):
        test, *train = (files.read_jsonl(path, ("source", "target")) for path in read)
        counts = overlap(test, *train)
        files.write_json(out, counts)
        if known := counts.get("training", {}).get("source"):
            where = f"{read[0]}: {known:,} of {len(test):,} sources occur in the training pairs"
            errors.note(f"warning: {where}: scores there say little of new text")

    if job.rule == "corpus":
        write_corpus(job.execution, job.output)
    elif job.rule == "testset":
        write_testset(job.execution, job.output[0])
    elif job.rule == "dev_as_testset":
        copy(job.input[0], job.output[0])
    else:
        write_overlap(job.input, job.output[0])
