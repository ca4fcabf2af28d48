# Adapters that others have trained stand in for training (config: `adapters: released`).


localrules:
    adopt_adapter,


rule adopt_adapter:
    """Fetch or read a finished adapter, check it as if it were trained here, and write it in our layout."""
    input:
        folder=lambda w: given_adapter(w).folder or [],
        backbone=backbone_ready,
    output:
        update(directory(f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/adapter")),
    log:
        f"{R}/logs/adopt_adapter/{{direction}}.{{backbone}}.seed{{seed}}.log",
    conda:
        "../../envs/training.yaml"
    params:
        spec=lambda w: jobs.adapter(EXPERIMENT, run_of(w)),
        backbone=backbone_folder,
        folder=lambda w: places.Unrecorded(f"--folder {shlex.quote(path)}" if (path := given_adapter(w).folder) else ""),
    shell:
        "python workflow/scripts/adopt_adapter.py {params.spec:q} --backbone {params.backbone:q} {params.folder}"
        f" --work {EXPERIMENT.models}/adapters/{{wildcards.direction}}.{{wildcards.backbone}}.seed{{wildcards.seed}}"
        " --out {output:q} 2> >(tee {log:q} >&2)"
