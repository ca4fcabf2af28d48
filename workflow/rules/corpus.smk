# Sentence pairs for training and testing. What may need a network is a local rule: cluster nodes may have none.
# Training pairs are drawn on the cluster where that takes minutes, from files that a local rule has downloaded.

CORPUS = f"{R}/corpus/{{direction}}"
TRAIN, DEV = f"{CORPUS}/train.jsonl", f"{CORPUS}/dev.jsonl"
TESTSET = f"{CORPUS}/test/{{testset}}.jsonl"
DATASET = f"{R}/datasets/{{dataset}}.json"
OVERLAP = f"{CORPUS}/overlap/{{testset}}.json"
LENGTH_RATIOS = f"{CORPUS}/length_ratios.json"
TOKENS = f"{R}/{{direction}}/{{backbone}}/tokens/{{testset}}.jsonl"


rule fetch_dataset:
    """Download a data set once, and keep which commit it is."""
    output:
        DATASET,
        record=record(DATASET),
    log:
        f"{R}/logs/fetch_dataset/{{dataset}}.log",
    wildcard_constraints:
        dataset=one_of(paths.downloaded_datasets(EXPERIMENT)),
    localrule: True
    conda:
        "../../envs/models.yaml"
    params:
        spec=spec_of(dataset_spec),
        execution=execution_of(
            lambda w: dict(folder=paths.dataset_folder(EXPERIMENT, w.dataset), confirm=EXPERIMENT.confirm)
        ),
    script:
        "../scripts/fetch.py"


# Whether training pairs are drawn from sources alone whose reading takes minutes and needs no network.
READS_SLOWLY = all(EXPERIMENT.sources[EXPERIMENT.directions[run.direction].train].slow for run in SETS.by_run)


rule corpus:
    """Sample train and dev pairs of a direction."""
    input:
        own=lambda w: own_files(EXPERIMENT.directions[w.direction].train, w.direction, "train", "dev"),
        dataset=lambda w: dataset_of(EXPERIMENT.directions[w.direction].train),
    output:
        train=TRAIN,
        dev=DEV,
        report=f"{CORPUS}/corpus.json",
        record=record(TRAIN),
    log:
        f"{R}/logs/corpus/{{direction}}.log",
    benchmark:
        f"{R}/benchmarks/corpus/{{direction}}.tsv"
    localrule: not READS_SLOWLY
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=spec_of(params.corpus),
        execution=execution_of(
            lambda w: reading(EXPERIMENT.directions[w.direction].train),
        ),
    script:
        "../scripts/corpus.py"


rule testset:
    """Read a test set of a direction."""
    input:
        own=lambda w: own_files(w.testset, w.direction, "test"),
        dataset=lambda w: dataset_of(w.testset),
    output:
        TESTSET,
        record=record(TESTSET),
    log:
        f"{R}/logs/testset/{{direction}}.{{testset}}.log",
    wildcard_constraints:
        testset=one_of(EXPERIMENT.sources),
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=spec_of(params.testset),
        execution=execution_of(lambda w: reading(w.testset)),
    script:
        "../scripts/corpus.py"


DEV_AS_TESTSET = f"{CORPUS}/test/{matrix.DEV}.jsonl"


rule dev_as_testset:
    """Use the development pairs as a test set, for studies that tune."""
    input:
        rules.corpus.output.dev,
    output:
        DEV_AS_TESTSET,
        record=record(DEV_AS_TESTSET),
    log:
        f"{R}/logs/dev_as_testset/{{direction}}.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=spec_of(params.testset),
    script:
        "../scripts/corpus.py"


# The directions whose training pairs are drawn here for an adapter.
TRAINED = {
    run.direction
    for run in SETS.by_run
    if EXPERIMENT.adapters == "trained" and not EXPERIMENT.backbones[run.backbone].zero_shot
}


rule overlap:
    """Count the test sentences that occur in the training pairs, for the footnotes of tables."""
    input:
        testset=TESTSET,
        train=lambda w: rules.corpus.output.train if w.direction in TRAINED else [],
    output:
        OVERLAP,
    log:
        f"{R}/logs/overlap/{{direction}}.{{testset}}.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=spec_of(overlap_spec),
    script:
        "../scripts/corpus.py"


rule length_ratios:
    """Measure how long the training translations of a direction are for their sources. For the table corpus."""
    input:
        pairs=rules.corpus.output.train,
        backbones=lambda w: [
            path for name in params.tokenizers(EXPERIMENT, w.direction) for path in backbone_files(name)
        ],
    output:
        LENGTH_RATIOS,
    log:
        f"{R}/logs/length_ratios/{{direction}}.log",
    benchmark:
        f"{R}/benchmarks/length_ratios/{{direction}}.tsv"
    conda:
        "../../envs/models.yaml"
    params:
        spec=spec_of(length_ratios_spec),
        execution=execution_of(
            lambda w: {
                name: paths.backbone_folder(EXPERIMENT, name) for name in params.tokenizers(EXPERIMENT, w.direction)
            },
        ),
    script:
        "../scripts/tokens.py"


rule tokens:
    """Count the tokens of test sentences and references, as a backbone's tokenizer splits them. For tables."""
    input:
        backbone=backbone_of,
        testset=TESTSET,
    output:
        TOKENS,
        record=record(TOKENS),
    log:
        f"{R}/logs/tokens/{{direction}}.{{backbone}}.{{testset}}.log",
    localrule: True
    conda:
        "../../envs/models.yaml"
    params:
        spec=spec_of(tokens_spec),
        execution=execution_of(lambda w: dict(backbone=paths.backbone_folder(EXPERIMENT, w.backbone))),
    script:
        "../scripts/tokens.py"
