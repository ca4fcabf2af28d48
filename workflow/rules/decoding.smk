# Denoising on the chosen canvases.

# One thread, whatever the job reserves: threads that wait for each other measure the rest of the machine.
LATENCY_OPTIONS = MODEL_OPTIONS.replace("{threads}", "1")


rule decode:
    """Translate the test set; canvases that any method has decoded before come from the store."""
    input:
        **CHECKPOINT,
        stamps=stamps_of(f"{CELL}/hypotheses.jsonl"),
        testset=rules.testset.output,
        canvas=rules.canvas.output,
        check=check_before(f"{CELL}/hypotheses.jsonl"),
    output:
        hypotheses=update(f"{CELL}/hypotheses.jsonl"),
        info=update(f"{CELL}/decoding.json"),
    log:
        f"{R}/logs/decode/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{method}}.{{order}}-T{{steps}}.log",
    wildcard_constraints:
        backbone=MASKED,
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=model_gpu,
    params:
        **MODEL_PARAMS,
        spec=lambda w: params_file(jobs.decoding(EXPERIMENT, run_of(w), w.order, int(w.steps))),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/decode.py {params.spec:q} --testset {input.testset:q} --canvas {input.canvas:q}"
        " --out {output.hypotheses:q} --info {output.info:q}"
        f" {MODEL_OPTIONS}"


rule latency:
    """Time one method alone. A benchmark: its output is of a machine and a day, and no second run gives the same.

    It reserves all cores, so that no other job of this workflow runs beside it; on a cluster its profile says how many.
    """
    input:
        **METHOD_FILES,
        testset=rules.testset.output,
        check=check_before(f"{CELL}/latency.json"),
    output:
        update(f"{CELL}/latency.json"),
    log:
        f"{R}/logs/latency/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{method}}.{{order}}-T{{steps}}.log",
    wildcard_constraints:
        backbone=MASKED,
    conda:
        "../../envs/decoding.yaml"
    threads: lambda w: workflow.cores
    resources:
        gpu=GPU,
    params:
        **METHOD_PARAMS
        | dict(
            options=lambda w: paths.Unrecorded(
                f"--device {EXPERIMENT.device} --no-store --minutes {EXPERIMENT.latency.minutes} {manifest_option(w)}"
            )
        ),
        spec=lambda w: params_file(jobs.latency(EXPERIMENT, run_of(w), w.method, w.order, int(w.steps))),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/latency.py {params.spec:q} --testset {input.testset:q} {params.statistics}"
        f" {{params.length_head}} --out {{output:q}} {LATENCY_OPTIONS}"


rule generate:
    """Translate the test set from left to right with an autoregressive backbone."""
    input:
        **CHECKPOINT,
        testset=rules.testset.output,
        check=check_before(f"{TESTED}/beam{{beams}}/hypotheses.jsonl"),
    output:
        hypotheses=update(f"{TESTED}/beam{{beams}}/hypotheses.jsonl"),
        info=update(f"{TESTED}/beam{{beams}}/decoding.json"),
    log:
        f"{R}/logs/generate/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.beam{{beams}}.log",
    wildcard_constraints:
        backbone=one_of(AUTOREGRESSIVE),
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=GPU,
    params:
        **MODEL_PARAMS,
        spec=lambda w: params_file(jobs.generation(EXPERIMENT, run_of(w))),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/generate.py {params.spec:q} --testset {input.testset:q}"
        " --out {output.hypotheses:q} --info {output.info:q}"
        f" {MODEL_OPTIONS}"
