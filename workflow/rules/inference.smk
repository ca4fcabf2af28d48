# The one job of a run that loads its model. The rules of canvases and decoding read what it has put into the store.


rule inference:
    """Load a run's model once and compute all that is asked of it, or one shard of the sentences of each test set."""
    input:
        **CHECKPOINT,
        sentences=sentences,
        statistics=fitted("length_statistics"),
        length_head=fitted("length_head"),
        check=check_before(f"{STAMPS}/{{session}}/inference/{{direction}}/{{backbone}}/seed{{seed}}.{{shard}}"),
    output:
        temp(f"{STAMPS}/{{session}}/inference/{{direction}}/{{backbone}}/seed{{seed}}.{{shard}}"),
    log:
        f"{R}/logs/inference/{{direction}}.{{backbone}}.seed{{seed}}.{{shard}}.{{session}}.log",
    wildcard_constraints:
        backbone=MASKED,
    priority: 3  # many jobs wait for it
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=GPU,
    params:
        **MODEL_PARAMS,
        spec=lambda w: params_file(jobs.inference(EXPERIMENT, run_of(w))),
        requests=lambda w: as_file(requests(w)),
        shard=lambda w: paths.Unrecorded(w.shard.replace("of", "/")),
        statistics=lambda w, input: given("--statistics", input.statistics),
        length_head=lambda w, input: given("--length-head", input.length_head),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/inference.py {params.spec:q} --requests {params.requests:q}"
        f" --shard {{params.shard}} {{params.statistics}} {{params.length_head}} --statistics-store {STATISTICS_STORE}"
        f" --out {{output:q}} {MODEL_OPTIONS}"
