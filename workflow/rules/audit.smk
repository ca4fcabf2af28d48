# What of the matrix is done.


localrules:
    audit,


rule audit:
    """List every cell, done or missing; never up to date, because it looks at files that it does not need."""
    log:
        f"{R}/logs/audit.log",
    run:
        audit.report(EXPERIMENT, f"{R}/audit/matrix.tsv", log[0])
