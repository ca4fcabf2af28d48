# What of the matrix is done.


localrules:
    audit,


rule audit:
    """List every cell, done or missing; never up to date, because it looks at files that it does not need."""
    log:
        f"{R}/logs/audit.log",
    conda:
        "../../envs/analysis.yaml"
    params:
        configs=lambda w: [str(path) for path in workflow.configfiles],
    shell:
        f"python -m entropy_valley audit --configfile {{params.configs:q}} --out {R}/audit/matrix.tsv 2> >(tee {{log:q}} >&2)"
