# How many slots each sentence gets.


rule length_statistics:
    """Read all-mask canvases of training pairs: what is usual for a checkpoint at a length. Only where a method asks."""
    input:
        **CHECKPOINT,
        stamps=stamps_of(f"{RUN}/length_statistics.json"),
        corpus=rules.corpus.output.train,
        check=check_before(f"{RUN}/length_statistics.json"),
    output:
        update(f"{RUN}/length_statistics.json"),
    log:
        f"{R}/logs/length_statistics/{{direction}}.{{backbone}}.seed{{seed}}.log",
    wildcard_constraints:
        backbone=MASKED,
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=model_gpu,
    params:
        **MODEL_PARAMS,
        spec=lambda w: params_file(jobs.length_statistics(EXPERIMENT, run_of(w))),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/length_statistics.py {params.spec:q} --testset {input.corpus:q}"
        f" --out {{output:q}} {STATISTICS_OPTIONS}"


rule length_head:
    """Train a linear layer that predicts canvas lengths from prompt states. Only where a method asks."""
    input:
        **CHECKPOINT,
        stamps=stamps_of(f"{RUN}/length_head.safetensors"),
        corpus=rules.corpus.output.train,
        dev=rules.corpus.output.dev,
        check=check_before(f"{RUN}/length_head.safetensors"),
    output:
        weights=update(f"{RUN}/length_head.safetensors"),
        info=update(f"{RUN}/length_head.json"),
    log:
        f"{R}/logs/length_head/{{direction}}.{{backbone}}.seed{{seed}}.log",
    wildcard_constraints:
        backbone=MASKED,
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=model_gpu,
    params:
        **MODEL_PARAMS,
        spec=lambda w: params_file(jobs.length_head(EXPERIMENT, run_of(w))),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/length_head.py {params.spec:q} --testset {input.corpus:q} --dev {input.dev:q}"
        " --out {output.weights:q} --info {output.info:q}"
        f" {MODEL_OPTIONS}"


rule sig_concentration:
    """Read each test sentence's all-mask canvas of the reference's length with and without its source. For a table."""
    input:
        **CHECKPOINT,
        stamps=stamps_of(f"{TESTED}/sig.jsonl"),
        testset=rules.testset.output,
        check=check_before(f"{TESTED}/sig.jsonl"),
    output:
        update(f"{TESTED}/sig.jsonl"),
    log:
        f"{R}/logs/sig_concentration/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.log",
    wildcard_constraints:
        backbone=MASKED,
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=model_gpu,
    params:
        **MODEL_PARAMS,
        spec=lambda w: params_file(jobs.sig_concentration(EXPERIMENT, run_of(w))),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/sig_concentration.py {params.spec:q} --testset {input.testset:q}"
        f" --out {{output:q}} {MODEL_OPTIONS}"


rule canvas:
    """Choose the canvas length of every test sentence; Oracle and Ratio load no model."""
    input:
        **METHOD_FILES,
        stamps=stamps_of(f"{TESTED}/{{method}}/canvas.jsonl"),
        testset=rules.testset.output,
        check=check_before(f"{TESTED}/{{method}}/canvas.jsonl"),
    output:
        update(f"{TESTED}/{{method}}/canvas.jsonl"),
    log:
        f"{R}/logs/canvas/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{method}}.log",
    wildcard_constraints:
        backbone=MASKED,
        method=one_of(CHOSEN),
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=canvas_gpu,
    params:
        **METHOD_PARAMS,
        spec=lambda w: params_file(jobs.canvas(EXPERIMENT, run_of(w), w.method)),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/canvas.py {params.spec:q} --testset {input.testset:q}"
        " {params.statistics} {params.length_head}"
        f" --out {{output:q}} {MODEL_OPTIONS}"


rule reassigned_canvas:
    """A control: the canvas ratios of another method, dealt to other sentences. No model is loaded."""
    input:
        **CHECKPOINT,
        testset=rules.testset.output,
        of=reassigned_from,
    output:
        update(f"{TESTED}/{{method}}/canvas.jsonl"),
    log:
        f"{R}/logs/canvas/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{method}}.log",
    wildcard_constraints:
        backbone=MASKED,
        method=one_of(REASSIGNED),
    conda:
        "../../envs/decoding.yaml"
    params:
        **MODEL_PARAMS,
        spec=lambda w: params_file(jobs.canvas(EXPERIMENT, run_of(w), w.method)),
    shell:
        f"HF_HUB_OFFLINE=1 {LAUNCH} "
        "python workflow/scripts/reassigned_canvas.py {params.spec:q} --testset {input.testset:q}"
        f" --of {{input.of:q}} --out {{output:q}} {MODEL_OPTIONS}"


rule valley:
    """Read all-mask canvases around the reference's length and on a dense grid: a diagnostic that sees the reference."""
    input:
        **CHECKPOINT,
        stamps=stamps_of(f"{TESTED}/valley.json"),
        testset=rules.testset.output,
        check=check_before(f"{TESTED}/valley.json"),
    output:
        update(f"{TESTED}/valley.json"),
    log:
        f"{R}/logs/valley/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.log",
    wildcard_constraints:
        backbone=MASKED,
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=model_gpu,
    params:
        **MODEL_PARAMS,
        spec=lambda w: params_file(jobs.valley(EXPERIMENT, run_of(w))),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/valley.py {params.spec:q} --testset {input.testset:q}"
        f" --out {{output:q}} {MODEL_OPTIONS}"


localrules:
    tokens,


rule tokens:
    """Count the tokens of test sentences and references, as a backbone's tokenizer splits them. For tables."""
    input:
        backbone=backbone_ready,
        testset=rules.testset.output,
    output:
        update(f"{R}/{{direction}}/{{backbone}}/tokens/{{testset}}.jsonl"),
    log:
        f"{R}/logs/tokens/{{direction}}.{{backbone}}.{{testset}}.log",
    conda:
        "../../envs/decoding.yaml"
    params:
        backbone=backbone_folder,
        spec=lambda w: params_file(jobs.tokens(EXPERIMENT, w.backbone)),
    shell:
        f"HF_HUB_OFFLINE=1 {LAUNCH} "
        "python workflow/scripts/tokens.py {params.spec:q} --testset {input.testset:q}"
        " --backbone {params.backbone:q} --out {output:q}"
