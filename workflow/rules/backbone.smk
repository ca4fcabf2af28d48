# Checkpoints: released ones are fetched, the demo's are pre-trained, a user's own folder is taken as it is.

from pathlib import Path


def backbone_folder(wildcards):
    """Where the checkpoint is: a Path, because Snakemake re-runs no job for a param that is no builtin type, and a
    checkpoint that has only moved must not cost hundreds of GPU-hours."""
    return Path(specs.backbone_folder(EXPERIMENT, wildcards.backbone))


def backbone_made_here(wildcards):
    """The checkpoint folder where a rule makes it; a user's own folder is no rule's output."""
    return [] if EXPERIMENT.backbones[wildcards.backbone].folder else str(backbone_folder(wildcards))


localrules:
    fetch_backbone,


rule fetch_backbone:
    """Download a released checkpoint, once."""
    output:
        directory(f"{EXPERIMENT.models}/{{backbone}}"),
    params:
        spec=lambda w: specs.hub(EXPERIMENT, w.backbone),
    log:
        f"{R}/logs/fetch_backbone/{{backbone}}.log",
    shell:
        "python workflow/scripts/fetch_backbone.py {params.spec:q} --out {output:q}"
        f" --work {EXPERIMENT.models}/.{{wildcards.backbone}}.part 2> >(tee {{log:q}} >&2)"


rule pretrain:
    """Make a tiny backbone from nothing, in the released layout of its family (demo only)."""
    input:
        train=lambda w: expand(rules.corpus.output.train, direction=specs.pretraining_directions(EXPERIMENT, w.backbone)),
        dev=lambda w: expand(rules.corpus.output.dev, direction=specs.pretraining_directions(EXPERIMENT, w.backbone)),
    output:
        directory(f"{R}/backbones/{{backbone}}"),
    params:
        spec=lambda w: specs.pretraining(EXPERIMENT, w.backbone),
    log:
        f"{R}/logs/pretrain/{{backbone}}.log",
    priority: 10  # everything waits for the backbones
    shell:
        "python workflow/scripts/pretrain.py {params.spec:q} --corpus {input.train:q} --dev {input.dev:q}"
        f" --out {{output:q}} --work {R}/work/pretrain/{{wildcards.backbone}}"
        f" --logs {R}/logs/tensorboard/pretrain/{{wildcards.backbone}}"
        f" --checkpoint-every {EXPERIMENT.training.checkpoint_every}"
        " --threads {threads} 2> >(tee {log:q} >&2)"
