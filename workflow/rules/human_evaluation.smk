# Human evaluation: packs for annotators, and what their filled forms say. docs/human_evaluation.md


HUMAN = f"{R}/human_evaluation/{{direction}}"


wildcard_constraints:
    annotator="|".join(EXPERIMENT.human_evaluation.annotators),


localrules:
    packs,
    human_forms,
    human_guidelines,
    human_ratings,


rule human_pack:
    """Choose the sentences of a direction, and hide which system is which."""
    input:
        testset=lambda w: expand(rules.testset.output, direction=w.direction, testset=evaluated(w)[0].testset),
        outputs=lambda w: [
            f"{cell.folder(R)}/{name}" for cell in evaluated(w) for name in ("hypotheses.jsonl", "scores.jsonl")
        ],
    output:
        pack=update(f"{HUMAN}/pack.json"),
        mapping=update(f"{HUMAN}/private/mapping.json"),
    log:
        f"{R}/logs/human_pack/{{direction}}.log",
    conda:
        "../../envs/human_evaluation.yaml"
    params:
        spec=lambda w: params_file(human_evaluation.pack(EXPERIMENT, w.direction)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/human_pack.py {params.spec:q} --testset {input.testset:q}"
        " --pack {output.pack:q} --mapping {output.mapping:q}"


rule human_forms:
    """The form of an annotator: a spreadsheet, CSV, and a page."""
    input:
        rules.human_pack.output.pack,
    output:
        xlsx=f"{HUMAN}/{{annotator}}/{{direction}}.{{annotator}}.xlsx",
        csv=f"{HUMAN}/{{annotator}}/{{direction}}.{{annotator}}.csv",
        html=f"{HUMAN}/{{annotator}}/{{direction}}.{{annotator}}.html",
    log:
        f"{R}/logs/human_forms/{{direction}}.{{annotator}}.log",
    conda:
        "../../envs/human_evaluation.yaml"
    params:
        revision=revisions.HUMAN_EVALUATION,
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/human_forms.py {input:q} --annotator {wildcards.annotator}"
        " --xlsx {output.xlsx:q} --csv {output.csv:q} --html {output.html:q}"


rule human_guidelines:
    """What annotators are told, in one language."""
    input:
        rules.human_pack.output.pack,
    output:
        md=f"{HUMAN}/guidelines.{{language}}.md",
        pdf=f"{HUMAN}/guidelines.{{language}}.pdf",
    log:
        f"{R}/logs/human_guidelines/{{direction}}.{{language}}.log",
    wildcard_constraints:
        language=one_of(guidelines.LANGUAGES),
    conda:
        "../../envs/human_evaluation.yaml"
    params:
        revision=revisions.HUMAN_EVALUATION,
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/human_guidelines.py {input:q} --language {wildcards.language}"
        " --md {output.md:q} --pdf {output.pdf:q}"


rule human_simulated:
    """Fill in a form as a simulated annotator (demo only)."""
    input:
        rules.human_pack.output.pack,
    output:
        update(f"{HUMAN}/simulated/{{direction}}.{{annotator}}.csv"),
    log:
        f"{R}/logs/human_simulated/{{direction}}.{{annotator}}.log",
    conda:
        "../../envs/human_evaluation.yaml"
    params:
        spec=lambda w: params_file(human_evaluation.simulation(EXPERIMENT)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/human_simulated.py {params.spec:q} {input:q} --annotator {wildcards.annotator}"
        " --out {output:q}"


rule human_ratings:
    """Check filled forms, and write what they say of the systems."""
    input:
        pack=rules.human_pack.output.pack,
        mapping=rules.human_pack.output.mapping,
        forms=lambda w: human_evaluation.forms(EXPERIMENT, w.direction),
    output:
        update(f"{HUMAN}/ratings.jsonl"),
    log:
        f"{R}/logs/human_ratings/{{direction}}.log",
    conda:
        "../../envs/human_evaluation.yaml"
    params:
        spec=params_file(human_evaluation.ratings(EXPERIMENT)),
        folder=paths.Unrecorded(shlex.quote(EXPERIMENT.human_evaluation.forms)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/human_ratings.py {params.spec:q} --pack {input.pack:q} --mapping {input.mapping:q}"
        " --forms {input.forms:q} --folder {params.folder} --out {output:q}"


rule packs:
    """All that annotators get."""
    input:
        expand(
            rules.human_forms.output,
            direction=matrix.evaluated_directions(EXPERIMENT),
            annotator=EXPERIMENT.human_evaluation.annotators,
        ),
        expand(
            rules.human_guidelines.output,
            direction=matrix.evaluated_directions(EXPERIMENT),
            language=guidelines.LANGUAGES,
        ),
