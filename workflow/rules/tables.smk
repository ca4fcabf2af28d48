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
        spec=specs.comparison(EXPERIMENT, MAIN_CELLS),
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
        spec=specs.comparison(EXPERIMENT, TABLE_CELLS),
    shell:
        "python workflow/scripts/crossbb_table.py {params.spec:q}"
        " --tex {output.tex:q} --md {output.md:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"
