# Sentence pairs for training and testing.


# These may need a network; cluster nodes may have none.
localrules:
    testset,
    dev_as_testset,


if not EXPERIMENT.corpus.on_cluster:

    localrules:
        corpus,


rule corpus:
    """Sample train and dev pairs of a direction; of a slow source those of its reverse in the same pass."""
    input:
        lambda w: own_files(EXPERIMENT.directions[w.direction].train),
    output:
        train=update(f"{R}/corpus/{{direction}}/train.jsonl"),
        dev=update(f"{R}/corpus/{{direction}}/dev.jsonl"),
        report=update(f"{R}/corpus/{{direction}}/corpus.json"),
    log:
        f"{R}/logs/corpus/{{direction}}.log",
    conda:
        "../../envs/corpus.yaml"
    params:
        spec=lambda w: params_file(jobs.corpus(EXPERIMENT, w.direction)),
        both_ways=lambda w: paths.Unrecorded("--both-ways" * jobs.both_ways(EXPERIMENT, w.direction)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/corpus.py {params.spec:q}"
        " --train {output.train:q} --dev {output.dev:q} --report {output.report:q} {params.both_ways}"


rule testset:
    """Read a test set of a direction."""
    input:
        lambda w: own_files(w.testset),
    output:
        update(f"{R}/corpus/{{direction}}/test/{{testset}}.jsonl"),
    log:
        f"{R}/logs/testset/{{direction}}.{{testset}}.log",
    wildcard_constraints:
        testset=one_of(EXPERIMENT.sources),
    conda:
        "../../envs/corpus.yaml"
    params:
        spec=lambda w: params_file(jobs.testset(EXPERIMENT, w.direction, w.testset)),
    shell:
        f"{LAUNCH} python workflow/scripts/testset.py {{params.spec:q}} --out {{output:q}}"


rule dev_as_testset:
    """Use the development pairs as a test set, for studies that tune."""
    input:
        rules.corpus.output.dev,
    output:
        update(f"{R}/corpus/{{direction}}/test/{matrix.DEV}.jsonl"),
    log:
        f"{R}/logs/testset/{{direction}}.{matrix.DEV}.log",
    conda:
        "../../envs/corpus.yaml"
    shell:
        f"{LAUNCH} cp {{input:q}} {{output:q}}"
