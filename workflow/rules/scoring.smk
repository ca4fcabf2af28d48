# The metrics of each cell.


localrules:
    fetch_comet,


rule fetch_comet:
    """Download a COMET checkpoint once, and keep which one it is."""
    output:
        update(f"{R}/checkpoints/{{checkpoint}}.json"),
    log:
        f"{R}/logs/fetch_comet/{{checkpoint}}.log",
    wildcard_constraints:
        checkpoint=one_of(DOWNLOADED_COMETS),
    conda:
        "../../envs/scoring.yaml"
    params:
        checkpoint=comet_repository,
        options=comet_options,
    shell:
        f"{LAUNCH} python workflow/scripts/fetch_comet.py {{params.checkpoint:q}} {{params.options}} --out {{output:q}}"


rule train_comet:
    """Train the toy COMET on corrupted references (demo only)."""
    input:
        train=expand(rules.corpus.output.train, direction=EXPERIMENT.matrix.directions),
        dev=expand(rules.corpus.output.dev, direction=EXPERIMENT.matrix.directions),
    output:
        update(f"{R}/comet/comet.json"),
    log:
        f"{R}/logs/train_comet.log",
    priority: 10
    conda:
        "../../envs/scoring.yaml"
    params:
        spec=lambda w: params_file(jobs.comet_training(EXPERIMENT)),
        out=folder_of_output,
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/train_comet.py {params.spec:q} --corpus {input.train:q} --dev {input.dev:q}"
        " --out {params.out:q}"


rule comet:
    """Load the COMET checkpoints once for a direction and test set and score all that is asked for into the store."""
    input:
        testset=rules.testset.output,
        hypotheses=hypotheses_of_stamp,
        comet=comet_ready,
        check=check_before(f"{STAMPS}/{{session}}/comet/{{direction}}/{{testset}}"),
    output:
        temp(f"{STAMPS}/{{session}}/comet/{{direction}}/{{testset}}"),
    log:
        f"{R}/logs/comet/{{direction}}.{{testset}}.{{session}}.log",
    priority: 3  # many jobs wait for it
    conda:
        "../../envs/scoring.yaml"
    resources:
        gpu=GPU,
    params:
        spec=lambda w: params_file(jobs.scoring(EXPERIMENT, w.direction)),
        hypotheses=lambda w, input: as_file(list(input.hypotheses)),
        comet=paths.Unrecorded(paths.comet_folder(EXPERIMENT)),
        options=scoring_options,
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/comet_scores.py {params.spec:q} --testset {input.testset:q}"
        " --hypotheses {params.hypotheses:q} --comet {params.comet:q}"
        f" --store {QUOTED}/store/scoring/{{wildcards.direction}} --out {{output:q}} {{params.options}}"
        " --threads {threads}"


rule score:
    """Score the hypotheses of a cell by all metrics."""
    input:
        testset=rules.testset.output,
        hypotheses=f"{TESTED}/{{system}}/hypotheses.jsonl",
        comet=comet_ready,
        stamps=stamps_of(f"{TESTED}/{{system}}/scores.jsonl"),
        check=check_before(f"{TESTED}/{{system}}/scores.jsonl"),
    output:
        segments=update(f"{TESTED}/{{system}}/scores.jsonl"),
        system=update(f"{TESTED}/{{system}}/scores.json"),
    log:
        f"{R}/logs/score/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{system}}.log",
    conda:
        "../../envs/scoring.yaml"
    resources:
        gpu=score_gpu,
    params:
        spec=lambda w: params_file(jobs.scoring(EXPERIMENT, w.direction)),
        comet=paths.Unrecorded(paths.comet_folder(EXPERIMENT)),
        options=scoring_options,
    shell:
        f"{ON_GPU} "
        "python workflow/scripts/score.py {params.spec:q} --testset {input.testset:q} --hypotheses {input.hypotheses:q}"
        " --segments {output.segments:q} --system {output.system:q}"
        " --comet {params.comet:q}"
        f" --store {QUOTED}/store/scoring/{{wildcards.direction}} {{params.options}}"
        " --threads {threads}"
