# How many slots each sentence gets.


rule canvas:
    """Choose the canvas length of every test sentence; Oracle and Ratio load no model."""
    input:
        testset=rules.testset.output,
        adapter=adapter_of,
        backbone=backbone_ready,
    output:
        update(f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/{{testset}}/{{method}}/canvas.jsonl"),
    log:
        f"{R}/logs/canvas/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{method}}.log",
    wildcard_constraints:
        backbone=MASKED,
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=lambda w: 0 if w.method in MODEL_FREE else GPU,
    params:
        spec=lambda w: jobs.canvas(EXPERIMENT, run_of(w), w.method),
        backbone=backbone_folder,
        adapter=adapter_option,
        options=DEVICE_OPTIONS,
    shell:
        "HF_HUB_OFFLINE=1 python workflow/scripts/canvas.py {params.spec:q} --testset {input.testset:q}"
        f" --out {{output:q}} {MODEL_OPTIONS} 2> >(tee {{log:q}} >&2)"
