# Checkpoints: released ones are downloaded, the demo's are pre-trained, a user's own folder is used in place.


localrules:
    fetch_backbone,


rule fetch_backbone:
    """Download a released checkpoint, or check the user's own copy; write its manifest."""
    output:
        update(f"{R}/backbones/{{backbone}}.json"),
    log:
        f"{R}/logs/fetch_backbone/{{backbone}}.log",
    conda:
        "../../envs/training.yaml"
    params:
        spec=lambda w: params_file(jobs.hub(EXPERIMENT, w.backbone)),
        folder=backbone_folder,
        own=lambda w: paths.Unrecorded("--own" if EXPERIMENT.backbones[w.backbone].folder else ""),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/fetch_backbone.py {params.spec:q} --folder {params.folder:q} {params.own}"
        " --out {output:q}"


rule pretrain:
    """Pre-train a tiny backbone, in the released layout of its family (demo only)."""
    input:
        train=lambda w: expand(rules.corpus.output.train, direction=jobs.pretraining_directions(EXPERIMENT, w.backbone)),
        dev=lambda w: expand(rules.corpus.output.dev, direction=jobs.pretraining_directions(EXPERIMENT, w.backbone)),
    output:
        update(f"{R}/backbones/{{backbone}}/{checkpoint.MANIFEST}"),
    log:
        f"{R}/logs/pretrain/{{backbone}}.log",
    priority: 10  # all other jobs wait for the backbones
    conda:
        "../../envs/training.yaml"
    params:
        spec=lambda w: params_file(jobs.pretraining(EXPERIMENT, w.backbone)),
        out=folder_of_output,
        train=lambda w, input: by_direction(w, input.train),
        dev=lambda w, input: by_direction(w, input.dev),
        options=paths.Unrecorded(f"--checkpoint-every {EXPERIMENT.training.checkpoint_every}"),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/pretrain.py {params.spec:q} --corpus {params.train:q} --dev {params.dev:q}"
        f" --out {{params.out:q}} --work {QUOTED}/work/pretrain/{{wildcards.backbone}}"
        f" --logs {QUOTED}/logs/tensorboard/pretrain/{{wildcards.backbone}}"
        " {params.options} --threads {threads}"


rule length_ratios:
    """Measure how long the training translations of a direction are for their sources. For the table corpus."""
    input:
        pairs=rules.corpus.output.train,
        backbones=lambda w: [
            file for name in corpora.tokenizers(EXPERIMENT, w.direction) for file in checkpoint_file(name)
        ],
    output:
        update(f"{R}/corpus/{{direction}}/length_ratios.json"),
    log:
        f"{R}/logs/length_ratios/{{direction}}.log",
    conda:
        "../../envs/decoding.yaml"
    params:
        spec=lambda w: params_file(corpora.length_ratios(EXPERIMENT, w.direction)),
        backbones=lambda w: checkpoint_options(corpora.tokenizers(EXPERIMENT, w.direction)),
    shell:
        f"HF_HUB_OFFLINE=1 {LAUNCH} "
        "python workflow/scripts/length_ratios.py {params.spec:q} --pairs {input.pairs:q} {params.backbones} --out {output:q}"
