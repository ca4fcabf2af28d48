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


rule entropy_valley_figure:
    """Mean all-mask entropy around the reference's length, by direction and backbone."""
    input:
        run_files(VALLEY_CELLS, "valley.json"),
    output:
        pdf=f"{R}/figures/entropy_valley.pdf",
        png=report(f"{R}/figures/entropy_valley.png", caption="../report/entropy_valley.rst", category="Figures"),
        csv=f"{R}/figures/entropy_valley.csv",
    log:
        f"{R}/logs/entropy_valley_figure.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, VALLEY_CELLS),
    shell:
        "python workflow/scripts/entropy_valley_figure.py {params.spec:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule selector_checks_figure:
    """Mean all-mask entropy of the main backbone against the canvas ratio."""
    input:
        run_files(SWEPT_CELLS, "valley.json"),
    output:
        pdf=f"{R}/figures/selector_checks.pdf",
        png=report(
            f"{R}/figures/selector_checks.png", caption="../report/selector_checks_figure.rst", category="Figures"
        ),
        csv=f"{R}/figures/selector_checks.csv",
    log:
        f"{R}/logs/selector_checks_figure.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.selector_checks(EXPERIMENT, SWEPT_CELLS),
    shell:
        "python workflow/scripts/selector_checks_figure.py {params.spec:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule budgets_figure:
    """A study's scores against the step budget."""
    input:
        lambda w: table_inputs(STUDIES[w.study]),
    output:
        pdf=f"{R}/figures/{{study}}.pdf",
        png=report(f"{R}/figures/{{study}}.png", caption="../report/budgets.rst", category="Figures"),
        csv=f"{R}/figures/{{study}}.csv",
    log:
        f"{R}/logs/budgets_figure/{{study}}.log",
    wildcard_constraints:
        study=one_of(studies_of("budgets")),
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=lambda w: tables.comparison(EXPERIMENT, STUDIES[w.study]),
    shell:
        "python workflow/scripts/budgets_figure.py {params.spec:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"


rule systems_figure:
    """A study's systems: their scores against the passes that they take."""
    input:
        lambda w: table_inputs(STUDIES[w.study]),
    output:
        pdf=f"{R}/figures/{{study}}.pdf",
        png=report(f"{R}/figures/{{study}}.png", caption="../report/systems_figure.rst", category="Figures"),
        csv=f"{R}/figures/{{study}}.csv",
    log:
        f"{R}/logs/systems_figure/{{study}}.log",
    wildcard_constraints:
        study=one_of(studies_of("systems", figure=True)),
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=lambda w: tables.study(EXPERIMENT, w.study),
    shell:
        "python workflow/scripts/systems_figure.py {params.spec:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q} 2> >(tee {log:q} >&2)"
