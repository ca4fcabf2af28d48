# Denoising on the chosen canvases.


rule decode:
    """Translate the test set; canvases that any method has decoded before come from the store."""
    input:
        testset=rules.testset.output,
        canvas=rules.canvas.output,
        adapter=rules.train.output,
        backbone=backbone_ready,
    output:
        hypotheses=update(
            f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/{{testset}}/{{method}}/{{order}}-T{{steps}}/hypotheses.jsonl"
        ),
        info=update(
            f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/{{testset}}/{{method}}/{{order}}-T{{steps}}/decoding.json"
        ),
    log:
        f"{R}/logs/decode/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{method}}.{{order}}-T{{steps}}.log",
    conda:
        "../../envs/decoding.yaml"
    resources:
        gpu=GPU,
    params:
        spec=lambda w: specs.decoding(EXPERIMENT, run_of(w), w.order, int(w.steps)),
        backbone=backbone_folder,
        options=DEVICE_OPTIONS,
    shell:
        "HF_HUB_OFFLINE=1 python workflow/scripts/decode.py {params.spec:q} --testset {input.testset:q} --canvas {input.canvas:q}"
        " --adapter {input.adapter:q} --out {output.hypotheses:q} --info {output.info:q}"
        f" {MODEL_OPTIONS} 2> >(tee {{log:q}} >&2)"
