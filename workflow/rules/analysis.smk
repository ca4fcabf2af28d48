# Paired tests over sentences.


rule significance:
    """EV, Ratio and Oracle against each other, sentence by sentence, for each run."""
    input:
        lambda w: table_inputs(TABLE_CELLS),
    output:
        report(f"{R}/tables/significance.csv", caption="../report/significance.rst", category="Tables"),
    log:
        f"{R}/logs/significance.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        spec=tables.comparison(EXPERIMENT, TABLE_CELLS),
    shell:
        "python workflow/scripts/significance.py {params.spec:q} --out {output:q} 2> >(tee {log:q} >&2)"
