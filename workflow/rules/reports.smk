# Tables and figures: what each is made of and how, its class says (src/entropy_valley/reporting/reports).


rule table:
    """A table: LaTeX, the same with its caption, Markdown, a page, and its numbers."""
    input:
        lambda w: TABLES[w.table].inputs(EXPERIMENT),
    output:
        tex=update(f"{R}/tables/{{table}}.tex"),
        captioned=update(f"{R}/tables/{{table}}.float.tex"),
        md=update(f"{R}/tables/{{table}}.md"),
        html=in_report(f"{R}/tables/{{table}}.html", "tables"),
        csv=in_report(f"{R}/tables/{{table}}.csv", "tables", "raw numbers"),
    log:
        f"{R}/logs/table/{{table}}.log",
    wildcard_constraints:
        table=one_of(TABLES),
    conda:
        "../../envs/analysis.yaml"
    params:
        report=lambda w: TABLES[w.table].key,
        params=lambda w: params_file(TABLES[w.table].params(EXPERIMENT)),
        caption=lambda w: paths.Unrecorded(TABLES[w.table].described(EXPERIMENT)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/report.py {params.report} {params.params:q}"
        " --tex {output.tex:q} --float.tex {output.captioned:q} --md {output.md:q} --html {output.html:q}"
        " --csv {output.csv:q}"
        " --caption={params.caption:q}"


rule comparison:
    """Tables of this config beside the paper's numbers: a page, Markdown and the numbers."""
    input:
        lambda w: COMPARISONS[w.comparison].inputs(EXPERIMENT),
    output:
        html=in_report(f"{R}/tables/{{comparison}}.html", "tables"),
        md=update(f"{R}/tables/{{comparison}}.md"),
        csv=in_report(f"{R}/tables/{{comparison}}.csv", "tables", "raw numbers"),
    log:
        f"{R}/logs/comparison/{{comparison}}.log",
    wildcard_constraints:
        comparison=one_of(COMPARISONS),
    conda:
        "../../envs/analysis.yaml"
    params:
        report=lambda w: COMPARISONS[w.comparison].key,
        params=lambda w: params_file(COMPARISONS[w.comparison].params(EXPERIMENT)),
        caption=lambda w: paths.Unrecorded(COMPARISONS[w.comparison].described(EXPERIMENT)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/report.py {params.report} {params.params:q}"
        " --html {output.html:q} --md {output.md:q} --csv {output.csv:q}"


rule figure:
    """A figure: PDF, PNG and the plotted numbers."""
    input:
        lambda w: FIGURES[w.figure].inputs(EXPERIMENT),
    output:
        pdf=update(f"{R}/figures/{{figure}}.pdf"),
        png=in_report(f"{R}/figures/{{figure}}.png", "figures"),
        csv=update(f"{R}/figures/{{figure}}.csv"),
    log:
        f"{R}/logs/figure/{{figure}}.log",
    wildcard_constraints:
        figure=one_of(FIGURES),
    conda:
        "../../envs/analysis.yaml"
    params:
        report=lambda w: FIGURES[w.figure].key,
        params=lambda w: params_file(FIGURES[w.figure].params(EXPERIMENT)),
        caption=lambda w: paths.Unrecorded(FIGURES[w.figure].described(EXPERIMENT)),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/report.py {params.report} {params.params:q}"
        " --pdf {output.pdf:q} --png {output.png:q} --csv {output.csv:q}"


rule page:
    """Every sentence of a test set with the outputs of all methods, as a page for a browser."""
    input:
        lambda w: sentence_pages.inputs(EXPERIMENT, (w.direction, w.testset)),
    output:
        update(f"{R}/pages/{{direction}}.{{testset}}.html"),
    log:
        f"{R}/logs/page/{{direction}}.{{testset}}.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        params=lambda w: params_file(sentence_pages.params(EXPERIMENT, (w.direction, w.testset))),
    shell:
        f"{LAUNCH} python workflow/scripts/page.py {{params.params:q}} --html {{output:q}}"


localrules:
    pages,
    document,
    pdf,
    audit,


rule pages:
    """The pages of sentences of all test sets; `all` does not ask for them."""
    input:
        lambda w: [f"{R}/pages/{direction}.{testset}.html" for direction, testset in sentence_pages.cells(EXPERIMENT)],


rule document:
    """All tables and figures in the paper's order, as LaTeX."""
    input:
        DOCUMENTED,
    output:
        update(f"{R}/report.tex"),
    log:
        f"{R}/logs/document.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        params=lambda w: params_file(files.canonical(document.items(EXPERIMENT, READY))),
    shell:
        f"{LAUNCH} python workflow/scripts/document.py {{params.params:q}} --tex {{output:q}}"


rule pdf:
    """The same as PDF, where LaTeX is; `all` does not ask for it."""
    input:
        tex=rules.document.output,
        parts=DOCUMENTED,
    output:
        report(
            update(f"{R}/report.pdf"),
            caption="../report/document.rst",
            category="All in one document",
            labels={"name": "report.pdf"},
        ),
    log:
        f"{R}/logs/pdf.log",
    conda:
        "../../envs/analysis.yaml"
    shell:
        f"{LAUNCH} python workflow/scripts/document.py {{input.tex:q}} --pdf {{output:q}}"


rule audit:
    """Say of every cell whether it is done, and why not. Always runs: it inspects files that are no inputs."""
    log:
        f"{R}/logs/audit.log",
    run:
        audit.report(EXPERIMENT, f"{R}/audit/matrix.tsv", log[0], page=f"{R}/audit/matrix.html")
