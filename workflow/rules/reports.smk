# Tables and figures: what each is made of and how, its class says (src/entropy_valley/experiment/tables). They take seconds, so on a
# cluster they run where Snakemake runs. They share one coarse spec: a change of the config makes all of them again.


rule table:
    """A table: LaTeX, the same with its caption, Markdown, a page, and its numbers."""
    input:
        read_by("tables"),
    output:
        f"{R}/tables/{{table}}.tex",
        f"{R}/tables/{{table}}.float.tex",
        f"{R}/tables/{{table}}.md",
        in_report(f"{R}/tables/{{table}}.html", "tables"),
        in_report(f"{R}/tables/{{table}}.csv", "tables", "raw numbers"),
    log:
        f"{R}/logs/table/{{table}}.log",
    wildcard_constraints:
        table=one_of(in_folder("tables", "tex", "float.tex", "md", "html", "csv")),
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=tables.spec(EXPERIMENT),
        caption=captioned("tables"),
    script:
        "../scripts/report.py"


rule comparison:
    """Tables of this config beside the paper's numbers: a page, Markdown and the numbers."""
    input:
        read_by("tables"),
    output:
        in_report(f"{R}/tables/{{comparison}}.html", "tables"),
        f"{R}/tables/{{comparison}}.md",
        in_report(f"{R}/tables/{{comparison}}.csv", "tables", "raw numbers"),
    log:
        f"{R}/logs/comparison/{{comparison}}.log",
    wildcard_constraints:
        comparison=one_of(in_folder("tables", "html", "md", "csv")),
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=tables.spec(EXPERIMENT),
        caption=captioned("tables"),
    script:
        "../scripts/report.py"


rule figure:
    """A figure: PDF, SVG, PNG and the plotted numbers."""
    input:
        read_by("figures"),
    output:
        f"{R}/figures/{{figure}}.pdf",
        f"{R}/figures/{{figure}}.svg",
        in_report(f"{R}/figures/{{figure}}.png", "figures"),
        f"{R}/figures/{{figure}}.csv",
    log:
        f"{R}/logs/figure/{{figure}}.log",
    wildcard_constraints:
        figure=one_of(in_folder("figures", "pdf", "svg", "png", "csv")),
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=tables.spec(EXPERIMENT),
        caption=captioned("figures"),
    script:
        "../scripts/report.py"


PAGE = f"{R}/pages/{{direction}}.{{testset}}.html"


rule page:
    """Every sentence of a test set with the outputs of all methods, as a page for a browser."""
    input:
        page_inputs,
    output:
        PAGE,
    log:
        f"{R}/logs/page/{{direction}}.{{testset}}.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=tables.spec(EXPERIMENT),
    script:
        "../scripts/report.py"


rule pages:
    """The pages of sentences of all test sets; `all` does not ask for them."""
    input:
        [PAGE.format(direction=direction, testset=testset) for direction, testset in pages.cells(EXPERIMENT)],


rule live:
    """The tiny model of this package in a page that translates what is typed, and shows how; `all` does not ask for it."""
    output:
        f"{R}/{live.NAME}",
    log:
        f"{R}/logs/live.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=lambda wildcards: files.canonical(live.digests()),
    script:
        "../scripts/report.py"


DOCUMENTED = [f"{R}/{name}" for name in document.read(READY)]


rule document:
    """All tables and figures in the paper's order, as LaTeX."""
    input:
        DOCUMENTED,
    output:
        f"{R}/report.tex",
    log:
        f"{R}/logs/document.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=tables.spec(EXPERIMENT),
    script:
        "../scripts/report.py"


rule pdf:
    """The same as PDF, where LaTeX is; `all` does not ask for it."""
    input:
        tex=rules.document.output[0],
        parts=DOCUMENTED,
    output:
        report(
            f"{R}/report.pdf",
            caption="../report/document.rst",
            category="All in one document",
            labels={"name": "report.pdf"},
        ),
    log:
        f"{R}/logs/pdf.log",
    localrule: True
    conda:
        "../../envs/workflow.yaml"
    params:
        spec=tables.spec(EXPERIMENT),
    script:
        "../scripts/pdf.py"
