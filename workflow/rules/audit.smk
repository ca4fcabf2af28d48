# What of the matrix is done.


localrules:
    audit,


rule audit:
    """List every cell, done or missing; never up to date, because it looks at files that it does not need."""
    log:
        f"{R}/logs/audit.log",
    run:
        from entropy_valley.audit import audit, show, write_tsv

        states = audit(EXPERIMENT)
        write_tsv(f"{R}/audit/matrix.tsv", states)
        show(states)
        with open(log[0], "w") as file:
            show(states, file)
