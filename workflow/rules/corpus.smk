# Sentence pairs for training and testing.


# These may need a network; cluster nodes may have none.
localrules:
    fetch_dataset,
    testset,
    dev_as_testset,
    overlap,


if not EXPERIMENT.corpus.on_cluster:

    localrules:
        corpus,


rule fetch_dataset:
    """Download a data set of given files once, and keep which commit it is."""
    output:
        update(f"{R}/datasets/{{dataset}}.json"),
    log:
        f"{R}/logs/fetch_dataset/{{dataset}}.log",
    wildcard_constraints:
        dataset=one_of(paths.downloaded_datasets(EXPERIMENT)),
    conda:
        "../../envs/corpus.yaml"
    params:
        spec=lambda w: params_file(corpora.dataset(EXPERIMENT, w.dataset)),
        folder=lambda w: paths.Unrecorded(paths.dataset_folder(EXPERIMENT, w.dataset)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/fetch_dataset.py {params.spec:q} --folder {params.folder:q} --out {output:q}"


rule corpus:
    """Sample train and dev pairs of a direction; of a slow source those of its reverse in the same pass."""
    input:
        own=lambda w: own_files(EXPERIMENT.directions[w.direction].train, w.direction, "train", "dev"),
        dataset=lambda w: dataset_of(EXPERIMENT.directions[w.direction].train),
    output:
        train=update(f"{R}/corpus/{{direction}}/train.jsonl"),
        dev=update(f"{R}/corpus/{{direction}}/dev.jsonl"),
        report=update(f"{R}/corpus/{{direction}}/corpus.json"),
    log:
        f"{R}/logs/corpus/{{direction}}.log",
    conda:
        "../../envs/corpus.yaml"
    params:
        spec=lambda w: params_file(corpora.corpus(EXPERIMENT, w.direction)),
        dataset=lambda w, input: dataset_options(EXPERIMENT.directions[w.direction].train, input),
        both_ways=lambda w: paths.Unrecorded("--both-ways" * corpora.both_ways(EXPERIMENT, w.direction)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/corpus.py {params.spec:q}"
        " --train {output.train:q} --dev {output.dev:q} --report {output.report:q} {params.both_ways} {params.dataset}"


rule testset:
    """Read a test set of a direction."""
    input:
        own=lambda w: own_files(w.testset, w.direction, "test"),
        dataset=lambda w: dataset_of(w.testset),
    output:
        update(f"{R}/corpus/{{direction}}/test/{{testset}}.jsonl"),
    log:
        f"{R}/logs/testset/{{direction}}.{{testset}}.log",
    wildcard_constraints:
        testset=one_of(EXPERIMENT.sources),
    priority: 10  # trainings look whether the references fit into the context
    conda:
        "../../envs/corpus.yaml"
    params:
        spec=lambda w: params_file(corpora.testset(EXPERIMENT, w.direction, w.testset)),
        dataset=lambda w, input: dataset_options(w.testset, input),
    shell:
        f"{LAUNCH} python workflow/scripts/testset.py {{params.spec:q}} --out {{output:q}} {{params.dataset}}"


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


rule overlap:
    """Count the test sentences that occur in the training pairs, for the footnotes of tables."""
    input:
        testset=f"{R}/corpus/{{direction}}/test/{{testset}}.jsonl",
        train=lambda w: rules.corpus.output.train if w.direction in corpora.trained(EXPERIMENT) else [],
    output:
        update(f"{R}/corpus/{{direction}}/overlap/{{testset}}.json"),
    log:
        f"{R}/logs/overlap/{{direction}}.{{testset}}.log",
    conda:
        "../../envs/corpus.yaml"
    params:
        spec=params_file(files.canonical({"revision": revisions.OVERLAP})),
        train=lambda w, input: given("--train", input.get("train")),
    shell:
        f"{LAUNCH} python workflow/scripts/overlap.py {{params.spec:q}}"
        " --testset {input.testset:q} {params.train} --out {output:q}"
