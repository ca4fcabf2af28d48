# Translations and scores: a job for each set of cells, see src/entropy_valley/config/matrix.py. All sets of a run share a
# store of what its model has computed: a job that is repeated computes only what is new.

RUN_NAME = "{direction}.{backbone}.seed{seed}"


rule translate:
    """Load a run's model once, and translate with every cell of a set. The autoregressive baseline is translated here,
    too."""
    input:
        model=model_of(f"{SET}/{TRANSLATIONS}"),
        testsets=testsets_of(f"{SET}/{TRANSLATIONS}"),
        shards=shards_of,
    output:
        rows=f"{SET}/{TRANSLATIONS}",
        header=str(header_path(f"{SET}/{TRANSLATIONS}")),
    log:
        f"{R}/logs/translate/{RUN_NAME}.{{set}}.log",
    benchmark:
        f"{R}/benchmarks/translate/{RUN_NAME}.{{set}}.tsv"
    priority: 3
    conda:
        "../../envs/models.yaml"
    resources:
        gpu=GPU,  # also to put shards together: what the profile requests for the rule may exist on GPU nodes alone
        runtime=runtime_of(f"{SET}/{TRANSLATIONS}"),
        mem_mb=memory_of("translate"),
    params:
        spec=spec_of(f"{SET}/{TRANSLATIONS}"),
        how=how_of(f"{SET}/{TRANSLATIONS}", model),
    script:
        "../scripts/translate.py"


rule shard:
    """Translate one of several parts of each test set: those of a set run at once, on a GPU each."""
    input:
        model=model_of(f"{SET}/{TRANSLATIONS}"),
        testsets=testsets_of(f"{SET}/{TRANSLATIONS}"),
    output:
        shard=f"{SET}/shards/{{shard}}.jsonl",
    log:
        f"{R}/logs/shard/{RUN_NAME}.{{set}}.{{shard}}.log",
    benchmark:
        f"{R}/benchmarks/shard/{RUN_NAME}.{{set}}.{{shard}}.tsv"
    priority: 3
    conda:
        "../../envs/models.yaml"
    resources:
        gpu=GPU,
        runtime=runtime_of(f"{SET}/shards/{{shard}}.jsonl"),
        mem_mb=memory_of("shard"),
    params:
        spec=spec_of(f"{SET}/{TRANSLATIONS}"),
        how=how_of(f"{SET}/shards/{{shard}}.jsonl", model),
    script:
        "../scripts/translate.py"


rule diagnose:
    """Read a run's all-mask canvases around the reference's length, on a dense grid, and without the source. For figures."""
    input:
        model=model_of(f"{RUN}/{DIAGNOSTICS}"),
        testsets=testsets_of(f"{RUN}/{DIAGNOSTICS}"),
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
        runtime=runtime_of(f"{RUN}/{DIAGNOSTICS}"),
        mem_mb=memory_of("diagnose"),
    params:
        spec=spec_of(f"{RUN}/{DIAGNOSTICS}"),
        how=how_of(f"{RUN}/{DIAGNOSTICS}", model),
    script:
        "../scripts/translate.py"


LATENCY = f"{RUN}/latency/{{testset}}/{{method}}/{{order}}-T{{steps}}.json"


rule latency:
    """Time one cell alone. A benchmark: its output is of a machine and a day, and no second run gives the same.

    It reserves all cores, so that no other job of this workflow runs beside it; on a cluster its profile says how many.
    """
    input:
        model=model_of(LATENCY),
        testsets=testsets_of(LATENCY),
    output:
        LATENCY,
    log:
        f"{R}/logs/latency/{RUN_NAME}.{{testset}}.{{method}}.{{order}}-T{{steps}}.log",
    benchmark:
        f"{R}/benchmarks/latency/{RUN_NAME}.{{testset}}.{{method}}.{{order}}-T{{steps}}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: lambda w: workflow.cores
    resources:
        gpu=GPU,
        runtime=runtime_of(LATENCY),
        mem_mb=memory_of("latency"),
    params:
        spec=spec_of(LATENCY),
        how=how_of(LATENCY, lambda w: model(w) | dict(minutes=EXPERIMENT.latency.minutes)),
    script:
        "../scripts/translate.py"


rule score:
    """Load the metrics once, and score every cell of a set."""
    input:
        translations=f"{SET}/{TRANSLATIONS}",
        header=str(header_path(f"{SET}/{TRANSLATIONS}")),
        testsets=testsets_of(f"{SET}/{SCORES}"),
        comet=INVENTORY.comet(),
    output:
        rows=f"{SET}/{SCORES}",
        header=str(header_path(f"{SET}/{SCORES}")),
    log:
        f"{R}/logs/score/{RUN_NAME}.{{set}}.log",
    benchmark:
        f"{R}/benchmarks/score/{RUN_NAME}.{{set}}.tsv"
    conda:
        "../../envs/comet.yaml"
    resources:
        gpu=GPU,
        runtime=runtime_of(f"{SET}/{SCORES}"),
        mem_mb=memory_of("score"),
    params:
        spec=spec_of(f"{SET}/{SCORES}"),
        how=how_of(f"{SET}/{SCORES}", metrics),
    script:
        "../scripts/score.py"
