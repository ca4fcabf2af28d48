# How many slots each sentence gets.

STORE_OPTION = "" if EXPERIMENT.store else "--no-store"
# What canvas and decode share: where the model is, where finished work is kept, how it is run.
MODEL_OPTIONS = (
    f"--backbone {{params.backbone:q}} --store {R}/store/{{wildcards.direction}}/{{wildcards.backbone}}/seed{{wildcards.seed}}"
    f" {STORE_OPTION} --device {EXPERIMENT.device} --threads {{threads}}"
)


rule canvas:
    """Choose the canvas length of every test sentence; Oracle and Ratio load no model."""
    input:
        testset=rules.testset.output,
        adapter=rules.train.output,
        backbone=backbone_made_here,
    output:
        f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/{{testset}}/{{method}}/canvas.jsonl",
    params:
        spec=lambda w: specs.canvas(EXPERIMENT, run_of(w), w.method),
        backbone=backbone_folder,
    log:
        f"{R}/logs/canvas/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{method}}.log",
    resources:
        gpu=GPU,
    shell:
        "python workflow/scripts/canvas.py {params.spec:q} --testset {input.testset:q} --adapter {input.adapter:q}"
        f" --out {{output:q}} {MODEL_OPTIONS} 2> >(tee {{log:q}} >&2)"
