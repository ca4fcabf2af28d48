# Tables: LaTeX, Markdown and tidy CSV of the same numbers.


rule main_table:
    """The main table: length methods by direction, for the main backbone."""
    input:
        lambda w: table_inputs(MAIN_CELLS),
    output:
        tex=f"{R}/tables/main.tex",
        md=report(f"{R}/tables/main.md", caption="../report/main_table.rst", category="Tables"),
        csv=report(f"{R}/tables/main.csv", caption="../report/main_table.rst", category="Tables"),
    log:
        f"{R}/logs/main_table.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, MAIN_CELLS),
    shell:
        "python workflow/scripts/main_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule crossbb_table:
    """The same comparison over backbones."""
    input:
        lambda w: table_inputs(TABLE_CELLS),
    output:
        tex=f"{R}/tables/crossbb.tex",
        md=report(f"{R}/tables/crossbb.md", caption="../report/crossbb_table.rst", category="Tables"),
        csv=report(f"{R}/tables/crossbb.csv", caption="../report/crossbb_table.rst", category="Tables"),
    log:
        f"{R}/logs/crossbb_table.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, TABLE_CELLS),
    shell:
        "python workflow/scripts/crossbb_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule ar_reference_table:
    """The main backbone beside the autoregressive one."""
    input:
        lambda w: table_inputs(MAIN_CELLS + AR_CELLS),
    output:
        tex=f"{R}/tables/ar_reference.tex",
        md=report(f"{R}/tables/ar_reference.md", caption="../report/ar_reference_table.rst", category="Tables"),
        csv=report(f"{R}/tables/ar_reference.csv", caption="../report/ar_reference_table.rst", category="Tables"),
    log:
        f"{R}/logs/ar_reference_table.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, MAIN_CELLS + AR_CELLS),
    shell:
        "python workflow/scripts/ar_reference_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule dream_instruct_table:
    """What an instruction-tuned backbone makes of this protocol, prompt by prompt and with and without its shift."""
    input:
        lambda w: table_inputs(INSTRUCT_CELLS),
        hypotheses=[f"{cell.folder(R)}/hypotheses.jsonl" for cell in INSTRUCT_CELLS],
        adapters=[adapter_of(cell.run) for cell in INSTRUCT_CELLS],
        testset=[f"{R}/corpus/{cell.run.direction}/test/{cell.testset}.jsonl" for cell in INSTRUCT_CELLS[:1]],
    output:
        tex=f"{R}/tables/dream_instruct.tex",
        md=report(f"{R}/tables/dream_instruct.md", caption="../report/dream_instruct_table.rst", category="Tables"),
        csv=report(f"{R}/tables/dream_instruct.csv", caption="../report/dream_instruct_table.rst", category="Tables"),
    log:
        f"{R}/logs/dream_instruct_table.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.instruct(EXPERIMENT),
    shell:
        "python workflow/scripts/dream_instruct_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule selector_checks_table:
    """Is it the source that chooses EV's canvas? Its sweep, its ratios, its controls."""
    input:
        lambda w: table_inputs(STUDIES[w.study]),
        valley=lambda w: run_files(STUDIES[w.study], "valley.json"),
        canvas=lambda w: run_files(STUDIES[w.study], "ev/canvas.jsonl"),
    output:
        tex=f"{R}/tables/{{study}}.tex",
        md=report(f"{R}/tables/{{study}}.md", caption="../report/selector_checks_table.rst", category="Tables"),
        csv=report(f"{R}/tables/{{study}}.csv", caption="../report/selector_checks_table.rst", category="Tables"),
    log:
        f"{R}/logs/selector_checks_table/{{study}}.log",
    wildcard_constraints:
        study=one_of(studies_of("checks")),
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=lambda w: tables.selector_checks(EXPERIMENT, STUDIES[w.study]),
    shell:
        "python workflow/scripts/selector_checks_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule study_table:
    """The systems of a study beside each other."""
    input:
        lambda w: table_inputs(STUDIES[w.study]) + timings(w.study),
    output:
        tex=f"{R}/tables/{{study}}.tex",
        md=report(f"{R}/tables/{{study}}.md", caption="../report/study_table.rst", category="Tables"),
        csv=report(f"{R}/tables/{{study}}.csv", caption="../report/study_table.rst", category="Tables"),
    log:
        f"{R}/logs/study_table/{{study}}.log",
    wildcard_constraints:
        study=one_of(studies_of("systems")),
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=lambda w: tables.study(EXPERIMENT, w.study),
    shell:
        "python workflow/scripts/study_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule order_table:
    """Reveal orders on canvases of the reference's length, and how far they lie apart."""
    input:
        lambda w: table_inputs(STUDIES[w.study]),
    output:
        tex=f"{R}/tables/{{study}}.tex",
        md=report(f"{R}/tables/{{study}}.md", caption="../report/order_table.rst", category="Tables"),
        csv=report(f"{R}/tables/{{study}}.csv", caption="../report/order_table.rst", category="Tables"),
    log:
        f"{R}/logs/order_table/{{study}}.log",
    wildcard_constraints:
        study=one_of(studies_of("orders")),
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=lambda w: tables.orders(EXPERIMENT, w.study),
    shell:
        "python workflow/scripts/order_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule challenge_table:
    """Two reveal orders by what the source contains."""
    input:
        lambda w: table_inputs(STUDIES[w.study]),
        testsets=lambda w: test_files(STUDIES[w.study]),
        sigs=lambda w: run_files(STUDIES[w.study], "sig.jsonl"),
    output:
        tex=f"{R}/tables/{{study}}.tex",
        md=report(f"{R}/tables/{{study}}.md", caption="../report/challenge_table.rst", category="Tables"),
        csv=report(f"{R}/tables/{{study}}.csv", caption="../report/challenge_table.rst", category="Tables"),
    log:
        f"{R}/logs/challenge_table/{{study}}.log",
    wildcard_constraints:
        study=one_of(studies_of("categories")),
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=lambda w: tables.challenge(EXPERIMENT, w.study),
    shell:
        "python workflow/scripts/challenge_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule budgets_table:
    """Oracle, EV and Ratio of a study at each step budget."""
    input:
        lambda w: table_inputs(STUDIES[w.study]),
    output:
        tex=f"{R}/tables/{{study}}.tex",
        md=report(f"{R}/tables/{{study}}.md", caption="../report/budgets.rst", category="Tables"),
        csv=report(f"{R}/tables/{{study}}.csv", caption="../report/budgets.rst", category="Tables"),
    log:
        f"{R}/logs/budgets_table/{{study}}.log",
    wildcard_constraints:
        study=one_of(studies_of("budgets")),
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=lambda w: tables.comparison(EXPERIMENT, STUDIES[w.study]),
    shell:
        "python workflow/scripts/budgets_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"
