# Human evaluation: packs for annotators, and what their filled forms say. docs/human_evaluation.md


HUMAN = f"{R}/human_evaluation/{{direction}}"
PACK = f"{HUMAN}/pack.json"
GUIDELINES = expand(f"{HUMAN}/guidelines.{{language}}.md", language=LANGUAGES, allow_missing=True)
SIMULATED = f"{HUMAN}/simulated/{{direction}}.{{annotator}}.csv"
FORM = f"{HUMAN}/{{annotator}}/{{direction}}.{{annotator}}"


wildcard_constraints:
    annotator="|".join(EXPERIMENT.human_evaluation.annotators),


rule human_pack:
    """Choose the sentences of a direction, hide which system is which, and write the guidelines."""
    input:
        testset=lambda w: TESTSET.format(direction=w.direction, testset=evaluated(w)[0].testset),
        sets=lambda w: set_files(EXPERIMENT, evaluated(w)),
    output:
        pack=PACK,
        mapping=f"{HUMAN}/private/mapping.json",
        guidelines=GUIDELINES,
    log:
        f"{R}/logs/human_pack/{{direction}}.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=spec_of(pack_spec),
    script:
        "../scripts/human_pack.py"


rule human_forms:
    """The form of an annotator: a spreadsheet, CSV, and a page."""
    input:
        rules.human_pack.output.pack,
    output:
        xlsx=f"{FORM}.xlsx",
        csv=f"{FORM}.csv",
        html=f"{FORM}.html",
    log:
        f"{R}/logs/human_forms/{{direction}}.{{annotator}}.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=spec_of(of_pack()),
    script:
        "../scripts/human_forms.py"


rule human_simulated:
    """Fill in a form as a simulated annotator (demo only)."""
    input:
        rules.human_pack.output.pack,
    output:
        SIMULATED,
    log:
        f"{R}/logs/human_simulated/{{direction}}.{{annotator}}.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=spec_of(of_pack(seed=EXPERIMENT.human_evaluation.seed)),
    script:
        "../scripts/human_forms.py"


rule human_ratings:
    """Check filled forms, and write what they say of the systems."""
    input:
        pack=rules.human_pack.output.pack,
        mapping=rules.human_pack.output.mapping,
        forms=lambda w: [
            path if EXPERIMENT.human_evaluation.simulated else local(path)
            for path in params.filled_forms(EXPERIMENT, w.direction)
        ],
    output:
        f"{HUMAN}/ratings.jsonl",
    log:
        f"{R}/logs/human_ratings/{{direction}}.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=spec_of(of_pack(annotators=EXPERIMENT.human_evaluation.annotators)),
        execution=lambda w, output: dict(folder=EXPERIMENT.human_evaluation.forms),
    script:
        "../scripts/human_ratings.py"


rule packs:
    """All that annotators get."""
    input:
        expand(
            f"{FORM}.{{ending}}",
            ending=["xlsx", "csv", "html"],
            direction=matrix.evaluated_directions(EXPERIMENT),
            annotator=EXPERIMENT.human_evaluation.annotators,
        ),
        expand(GUIDELINES, direction=matrix.evaluated_directions(EXPERIMENT)),
