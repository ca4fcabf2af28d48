# LoRA-SFT: one adapter for each (direction, backbone, seed), independent of decoding.


rule train:
    """Fine-tune a backbone on a direction; a killed run resumes from its last checkpoint."""
    input:
        corpus=rules.corpus.output.train,
        backbone=backbone_ready,
        check=check_before(f"{RUN}/adapter/{adapters.FACTS}"),
    output:
        update(f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/adapter/{adapters.FACTS}"),
    log:
        f"{R}/logs/train/{{direction}}.{{backbone}}.seed{{seed}}.log",
    priority: 5
    conda:
        "../../envs/training.yaml"
    threads: EXPERIMENT.training.processes
    resources:
        gpu=GPU * EXPERIMENT.training.processes,
    params:
        spec=lambda w: params_file(jobs.training(EXPERIMENT, run_of(w))),
        backbone=backbone_folder,
        out=folder_of_output,
        options=lambda w: paths.Unrecorded(
            f"{manifest_option(w)} --device {EXPERIMENT.device} --processes {EXPERIMENT.training.processes} --checkpoint-every {EXPERIMENT.training.checkpoint_every}"
            f" --activation-checkpointing {str(EXPERIMENT.training.activation_checkpointing).lower()}"
            + (f" --wandb {EXPERIMENT.training.wandb}" if EXPERIMENT.training.wandb else "")
        ),
        tested=lambda w: tested_options(w),
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/train.py {params.spec:q} --corpus {input.corpus:q} --out {params.out:q}"
        " --backbone {params.backbone:q} {params.options} {params.tested}"
        f" --work {QUOTED}/work/train/{{wildcards.direction}}.{{wildcards.backbone}}.seed{{wildcards.seed}}"
        f" --logs {QUOTED}/logs/tensorboard/{{wildcards.direction}}/{{wildcards.backbone}}/seed{{wildcards.seed}}"
        " --threads {threads}"
