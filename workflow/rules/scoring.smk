# COMET, BLEU and chrF of each cell.


def comet_made_here(wildcards):
    """The checkpoint folder where a rule makes it; a user's own ``.ckpt`` is no rule's output."""
    if specs.is_local_comet(EXPERIMENT):
        return []
    return rules.train_comet.output if EXPERIMENT.scoring.comet.training else rules.fetch_comet.output


def table_inputs(cells):
    """The files of cells that tables, figures and tests read."""
    names = ("scores.json", "scores.jsonl", "decoding.json")
    return [f"{cell.folder(R)}/{name}" for cell in cells for name in names]


localrules:
    fetch_comet,


rule fetch_comet:
    """Download the COMET checkpoint, once."""
    output:
        directory(f"{EXPERIMENT.models}/comet"),
    params:
        checkpoint=EXPERIMENT.scoring.comet.checkpoint,
    log:
        f"{R}/logs/fetch_comet.log",
    shell:
        "python workflow/scripts/fetch_comet.py {params.checkpoint:q} --out {output:q}"
        f" --work {EXPERIMENT.models}/.comet.part 2> >(tee {{log:q}} >&2)"


rule train_comet:
    """Train the embedded estimator on corrupted references (demo only)."""
    input:
        train=expand(rules.corpus.output.train, direction=EXPERIMENT.matrix.directions),
        dev=expand(rules.corpus.output.dev, direction=EXPERIMENT.matrix.directions),
    output:
        directory(f"{R}/comet"),
    params:
        spec=lambda w: specs.comet_training(EXPERIMENT),
    log:
        f"{R}/logs/train_comet.log",
    priority: 10
    shell:
        "python workflow/scripts/train_comet.py {params.spec:q} --corpus {input.train:q} --dev {input.dev:q}"
        " --out {output:q} 2> >(tee {log:q} >&2)"


rule score:
    """Score the hypotheses of a cell."""
    input:
        testset=rules.testset.output,
        hypotheses=rules.decode.output.hypotheses,
        comet=comet_made_here,
    output:
        segments=f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/{{testset}}/{{method}}/{{order}}-T{{steps}}/scores.jsonl",
        system=f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/{{testset}}/{{method}}/{{order}}-T{{steps}}/scores.json",
    params:
        spec=lambda w: specs.scoring(EXPERIMENT, w.direction),
        comet=lambda w, input: Path(str(input.comet) or EXPERIMENT.scoring.comet.checkpoint),
    log:
        f"{R}/logs/score/{{direction}}.{{backbone}}.seed{{seed}}.{{testset}}.{{method}}.{{order}}-T{{steps}}.log",
    resources:
        gpu=GPU,
    shell:
        "python workflow/scripts/score.py {params.spec:q} --testset {input.testset:q} --hypotheses {input.hypotheses:q}"
        " --segments {output.segments:q} --system {output.system:q}"
        " --comet {params.comet:q}"
        f" --store {R}/store/scoring/{{wildcards.direction}} {STORE_OPTION} --device {EXPERIMENT.device}"
        " --threads {threads} 2> >(tee {log:q} >&2)"
