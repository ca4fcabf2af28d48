# Checkpoints, adapters and COMET: what has weights.
#
# A rename puts all files of a finished folder there at once. The first output says what the folder holds. What is
# downloaded is no output: it lies in the folder `models` of the config, and its small file in the results says what it is.

BACKBONE = f"{R}/backbones/{{backbone}}"
ADAPTER = f"{RUN}/adapter/{adapters.FACTS}"


rule fetch_backbone:
    """Download a released checkpoint, or check the user's own copy or that of this package; write its manifest."""
    output:
        f"{BACKBONE}.json",
        record=record(f"{BACKBONE}.json"),
    log:
        f"{R}/logs/fetch_backbone/{{backbone}}.log",
    localrule: True
    conda:
        "../../envs/models.yaml"
    params:
        spec=spec_of(params.hub),
        execution=execution_of(
            lambda w: dict(
                folder=paths.backbone_folder(EXPERIMENT, w.backbone),
                own=bool(EXPERIMENT.backbones[w.backbone].own_folder),
                confirm=EXPERIMENT.confirm,
            ),
        ),
    script:
        "../scripts/fetch.py"


PRETRAINED = f"{BACKBONE}/seed{{seed}}/{checkpoint.MANIFEST}"


rule pretrain:
    """Pre-train a tiny backbone, in the released layout of its family (demo only)."""
    input:
        train=lambda w: expand(TRAIN, direction=params.pretraining_directions(EXPERIMENT, w.backbone)),
        dev=lambda w: expand(DEV, direction=params.pretraining_directions(EXPERIMENT, w.backbone)),
    output:
        PRETRAINED,
        record=record(PRETRAINED),
        files=[f"{BACKBONE}/seed{{seed}}/{name}" for name in checkpoint.WRITTEN],
    log:
        f"{R}/logs/pretrain/{{backbone}}.seed{{seed}}.log",
    benchmark:
        f"{R}/benchmarks/pretrain/{{backbone}}.seed{{seed}}.tsv"
    wildcard_constraints:
        backbone=one_of(name for name, section in EXPERIMENT.backbones.items() if section.is_pretrained_here),
        seed=r"\d+",
    priority: 10  # all other jobs wait for the backbones
    conda:
        "../../envs/comet.yaml"
    params:
        spec=spec_of(params.pretraining),
        execution=execution_of(
            lambda w: dict(
                directions=params.pretraining_directions(EXPERIMENT, w.backbone),
                work=f"{R}/work/pretrain/{w.backbone}.seed{w.seed}",
                logs=f"{R}/logs/tensorboard/pretrain/{w.backbone}.seed{w.seed}",
                checkpoint_every=EXPERIMENT.training.checkpoint_every,
            ),
        ),
    script:
        "../scripts/demo_models.py"


if EXPERIMENT.adapters == "released":

    rule adopt_adapter:
        """Download or read a given adapter, check it, and write it in our layout."""
        input:
            given=given_files,
            backbone=backbone_of,
        output:
            facts=ADAPTER,
            settings=f"{RUN}/adapter/{adapters.SETTINGS}",
            weights=f"{RUN}/adapter/{adapters.WEIGHTS}",
            record=record(ADAPTER),
        log:
            f"{R}/logs/adopt_adapter/{{direction}}.{{backbone}}.seed{{seed}}.log",
        localrule: True
        conda:
            "../../envs/models.yaml"
        params:
            spec=spec_of(params.adapter),
            execution=execution_of(
                lambda w: dict(
                    folder=paths.released_adapter(EXPERIMENT, run_of(w)).folder,
                    backbone=paths.backbone_folder(EXPERIMENT, w.backbone, run_of(w).seed),
                    work=run_of(w).folder(f"{EXPERIMENT.models}/adapters"),
                    confirm=EXPERIMENT.confirm,
                ),
            ),
        script:
            "../scripts/train.py"

else:

    rule train:
        """Fine-tune a backbone on a direction; a killed run resumes from its last checkpoint.

        The script starts a process for each GPU by torchrun.
        """
        input:
            corpus=rules.corpus.output.train,
            backbone=backbone_of,
        output:
            facts=ADAPTER,
            settings=f"{RUN}/adapter/{adapters.SETTINGS}",
            weights=f"{RUN}/adapter/{adapters.WEIGHTS}",
            losses=f"{RUN}/adapter/{adapters.LOSSES}",
            card=f"{RUN}/adapter/{CARD}",
            record=record(ADAPTER),
        log:
            f"{R}/logs/train/{{direction}}.{{backbone}}.seed{{seed}}.log",
        benchmark:
            f"{R}/benchmarks/train/{{direction}}.{{backbone}}.seed{{seed}}.tsv"
        priority: 5
        conda:
            "../../envs/models.yaml"
        threads: EXPERIMENT.training.processes * (2 if GPU else 1)
        resources:
            gpu=GPU * EXPERIMENT.training.processes,
            mem_mb=memory_of("train"),
        params:
            spec=spec_of(params.training),
            execution=execution_of(training),
            gpus=all_gpus,
        script:
            "../scripts/train.py"


rule check:
    """Check the machine that a training gets: `snakemake --profile slurm --force check`."""
    output:
        f"{R}/check.txt",
    log:
        f"{R}/logs/check.log",
    retries: 0
    conda:
        "../../envs/models.yaml"
    threads: CHECKED["processes"] * (2 if GPU else 1)
    resources:
        gpu=GPU * CHECKED["processes"],
        mem_mb=memory_of("train"),
    params:
        spec="{}",
        execution=dict(subject=CHECKED),
    script:
        "../scripts/check.py"


COMET = f"{R}/checkpoints/{{checkpoint}}.json"


rule fetch_comet:
    """Download a COMET checkpoint once, and keep which one it is."""
    output:
        COMET,
        record=record(COMET),
    log:
        f"{R}/logs/fetch_comet/{{checkpoint}}.log",
    wildcard_constraints:
        checkpoint=one_of(paths.downloaded_comets(EXPERIMENT)),
    localrule: True
    conda:
        "../../envs/models.yaml"
    params:
        spec=spec_of(comet_spec),
        execution=execution_of(
            lambda w: dict(
                folder=paths.comet_folder(EXPERIMENT, paths.downloaded_comets(EXPERIMENT)[w.checkpoint]),
                metric=paths.downloaded_comets(EXPERIMENT)[w.checkpoint],
                confirm=EXPERIMENT.confirm,
            ),
        ),
    script:
        "../scripts/fetch.py"


TOY_COMET = f"{R}/comet/comet.json"
TOY_COMET_FILES = [
    f"{R}/comet/{name}"
    for name in (
        "hparams.yaml",
        "checkpoints/model.ckpt",
        "encoder/config.json",
        *(f"encoder/{name}" for name in checkpoint.WRITTEN_TOKENIZER),
    )
]


rule train_comet:
    """Train the toy COMET on corrupted references (demo only)."""
    input:
        train=expand(TRAIN, direction=EXPERIMENT.matrix.directions),
        dev=expand(DEV, direction=EXPERIMENT.matrix.directions),
    output:
        TOY_COMET,
        record=record(TOY_COMET),
        files=TOY_COMET_FILES,
    log:
        f"{R}/logs/train_comet.log",
    benchmark:
        f"{R}/benchmarks/train_comet.tsv"
    priority: 10
    conda:
        "../../envs/comet.yaml"
    params:
        spec=spec_of(params.comet_training),
    script:
        "../scripts/demo_models.py"
