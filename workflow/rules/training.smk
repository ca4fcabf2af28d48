# LoRA-SFT: one adapter for each (direction, backbone, seed). Nothing here knows of decoding.

GPU = int(EXPERIMENT.device == "cuda")  # of a job that uses one


def run_of(wildcards):
    return matrix.Run(wildcards.direction, wildcards.backbone, int(wildcards.seed))


rule train:
    """Adapt a backbone to a direction; a killed run resumes at its last checkpoint."""
    input:
        corpus=rules.corpus.output.train,
        backbone=backbone_made_here,
    output:
        directory(f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/adapter"),
    params:
        spec=lambda w: specs.training(EXPERIMENT, run_of(w)),
        backbone=backbone_folder,
    log:
        f"{R}/logs/train/{{direction}}.{{backbone}}.seed{{seed}}.log",
    resources:
        gpu=GPU * EXPERIMENT.training.processes,
    priority: 5
    shell:
        "python workflow/scripts/train.py {params.spec:q} --corpus {input.corpus:q} --out {output:q}"
        " --backbone {params.backbone:q}"
        f" --device {EXPERIMENT.device} --checkpoint-every {EXPERIMENT.training.checkpoint_every}"
        f" --work {R}/work/train/{{wildcards.direction}}.{{wildcards.backbone}}.seed{{wildcards.seed}}"
        f" --logs {R}/logs/tensorboard/{{wildcards.direction}}/{{wildcards.backbone}}/seed{{wildcards.seed}}"
        " --threads {threads} 2> >(tee {log:q} >&2)"
