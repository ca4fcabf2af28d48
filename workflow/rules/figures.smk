# Figures: PDF, PNG and the plotted numbers.


rule hero_figure:
    """The main result at a glance."""
    input:
        lambda w: table_inputs(MAIN_CELLS + AR_CELLS),
    output:
        pdf=f"{R}/figures/hero.pdf",
        png=report(f"{R}/figures/hero.png", caption="../report/hero.rst", category="Figures"),
        csv=f"{R}/figures/hero.csv",
    log:
        f"{R}/logs/hero_figure.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, MAIN_CELLS + AR_CELLS),
    shell:
        "python workflow/scripts/hero_figure.py {params.spec:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule crossbb_figure:
    """Gap closure over backbones and directions."""
    input:
        lambda w: table_inputs(TABLE_CELLS),
    output:
        pdf=f"{R}/figures/crossbb.pdf",
        png=report(f"{R}/figures/crossbb.png", caption="../report/crossbb.rst", category="Figures"),
        csv=f"{R}/figures/crossbb.csv",
    log:
        f"{R}/logs/crossbb_figure.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, TABLE_CELLS),
    shell:
        "python workflow/scripts/crossbb_figure.py {params.spec:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule pareto_figure:
    """Quality against the step budget."""
    input:
        lambda w: table_inputs(PARETO_CELLS),
    output:
        pdf=f"{R}/figures/pareto.pdf",
        png=report(f"{R}/figures/pareto.png", caption="../report/pareto.rst", category="Figures"),
        csv=f"{R}/figures/pareto.csv",
    log:
        f"{R}/logs/pareto_figure.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, PARETO_CELLS),
    shell:
        "python workflow/scripts/pareto_figure.py {params.spec:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule selector_comparison_figure:
    """Quality against the passes that a selector takes."""
    input:
        lambda w: table_inputs(SELECTOR_CELLS),
    output:
        pdf=f"{R}/figures/selector_comparison.pdf",
        png=report(
            f"{R}/figures/selector_comparison.png", caption="../report/selector_comparison.rst", category="Figures"
        ),
        csv=f"{R}/figures/selector_comparison.csv",
    log:
        f"{R}/logs/selector_comparison_figure.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, SELECTOR_CELLS),
    shell:
        "python workflow/scripts/selector_comparison_figure.py {params.spec:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"
