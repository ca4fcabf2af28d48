# Translations and scores: a job for each set of cells, see src/entropy_valley/experiment/config/matrix.py. All sets of a run share a
# store of what its model has computed: a job that is repeated computes only what is new.

RUN_NAME = "{direction}.{backbone}.seed{seed}"
SHARD = f"{SET}/shards/{{shard}}.jsonl"


rule translate:
    """Load a run's model once, and translate with every cell of a set. The autoregressive baseline is translated here,
    too."""
    input:
        adapter=adapter_of(adapters.FACTS, adapters.SETTINGS, adapters.WEIGHTS),
        backbone=backbone_of,
        pairs=pairs_of,
        testsets=testsets_of,
    output:
        rows=f"{SET}/{TRANSLATIONS}",
        header=record(f"{SET}/{TRANSLATIONS}"),
    log:
        f"{R}/logs/translate/{RUN_NAME}.{{set}}.log",
    benchmark:
        f"{R}/benchmarks/translate/{RUN_NAME}.{{set}}.tsv"
    wildcard_constraints:
        set=rf"(?!(?:{DIVIDED})/)[^/]+",
    priority: 3
    conda:
        "../../envs/models.yaml"
    resources:
        gpu=GPU,
        mem_mb=memory_of("translate"),
    params:
        spec=spec_of(params.translation),
        execution=execution_of(model),
    script:
        "../scripts/translate.py"


rule shard:
    """Translate one of several parts of each test set: those of a set run at once, on a GPU each."""
    input:
        adapter=adapter_of(adapters.FACTS, adapters.SETTINGS, adapters.WEIGHTS),
        backbone=backbone_of,
        pairs=pairs_of,
        testsets=testsets_of,
    output:
        shard=SHARD,
        record=record(SHARD),
    log:
        f"{R}/logs/shard/{RUN_NAME}.{{set}}.{{shard}}.log",
    benchmark:
        f"{R}/benchmarks/shard/{RUN_NAME}.{{set}}.{{shard}}.tsv"
    priority: 3
    conda:
        "../../envs/models.yaml"
    resources:
        gpu=GPU,
        mem_mb=memory_of("shard"),
    params:
        spec=spec_of(params.translation),
        execution=execution_of(model),
    script:
        "../scripts/translate.py"


rule merge:
    """Put the shards of a set together."""
    input:
        adapter=adapter_of(adapters.FACTS),
        backbone=backbone_of,
        testsets=testsets_of,
        shards=shards_of(SHARD),
        records=shards_of(record(SHARD)),
    output:
        rows=rules.translate.output.rows,
        header=rules.translate.output.header,
    log:
        f"{R}/logs/merge/{RUN_NAME}.{{set}}.log",
    wildcard_constraints:
        set=DIVIDED,
    priority: 3
    localrule: True
    conda:
        "../../envs/models.yaml"
    params:
        spec=spec_of(params.translation),
        execution=execution_of(model),
    script:
        "../scripts/translate.py"


rule diagnose:
    """Read a run's all-mask canvases around the reference's length, on a dense grid, and without the source. For figures."""
    input:
        adapter=adapter_of(adapters.FACTS, adapters.SETTINGS, adapters.WEIGHTS),
        backbone=backbone_of,
        testsets=diagnosed_testsets,
    output:
        f"{RUN}/{DIAGNOSTICS}",
    log:
        f"{R}/logs/diagnose/{RUN_NAME}.log",
    benchmark:
        f"{R}/benchmarks/diagnose/{RUN_NAME}.tsv"
    conda:
        "../../envs/models.yaml"
    resources:
        gpu=GPU,
        mem_mb=memory_of("diagnose"),
    params:
        spec=spec_of(params.diagnostics),
        execution=execution_of(model),
    script:
        "../scripts/translate.py"


LATENCY = f"{RUN}/latency/{{testset}}/{{method}}/{{order}}-T{{steps}}.json"


rule latency:
    """Time one cell alone. A benchmark: its output is of a machine and a day, and no second run gives the same.

    It reserves all cores, so that no other job of this workflow runs beside it; on a cluster its profile says how many.
    """
    input:
        adapter=adapter_of(adapters.FACTS, adapters.SETTINGS, adapters.WEIGHTS),
        backbone=backbone_of,
        pairs=pairs_of,
        testset=TESTSET,
    output:
        LATENCY,
    log:
        f"{R}/logs/latency/{RUN_NAME}.{{testset}}.{{method}}.{{order}}.T{{steps}}.log",
    benchmark:
        f"{R}/benchmarks/latency/{RUN_NAME}.{{testset}}.{{method}}.{{order}}.T{{steps}}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: lambda w: workflow.cores
    resources:
        gpu=GPU,
        mem_mb=memory_of("latency"),
    params:
        spec=spec_of(params.latency),
        execution=execution_of(model),
    script:
        "../scripts/translate.py"


rule score:
    """Load the metrics once, and score every cell of a set."""
    input:
        translations=rules.translate.output.rows,
        header=rules.translate.output.header,
        testsets=testsets_of,
        comet=comet_files(),
    output:
        rows=f"{SET}/{SCORES}",
        header=record(f"{SET}/{SCORES}"),
    log:
        f"{R}/logs/score/{RUN_NAME}.{{set}}.log",
    benchmark:
        f"{R}/benchmarks/score/{RUN_NAME}.{{set}}.tsv"
    conda:
        "../../envs/comet.yaml"
    resources:
        gpu=GPU,
        mem_mb=memory_of("score"),
    params:
        spec=spec_of(params.scores),
        execution=execution_of(metrics),
    script:
        "../scripts/score.py"
