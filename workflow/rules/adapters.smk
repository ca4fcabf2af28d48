# Given adapters instead of training (config: `adapters: released`).


localrules:
    adopt_adapter,


rule adopt_adapter:
    """Download or read a given adapter, check it, and write it in our layout."""
    input:
        given=lambda w: [path for path in given_files(w) if os.path.exists(path)],
        backbone=backbone_ready,
    output:
        update(f"{R}/{{direction}}/{{backbone}}/seed{{seed}}/adapter/{adapters.FACTS}"),
    log:
        f"{R}/logs/adopt_adapter/{{direction}}.{{backbone}}.seed{{seed}}.log",
    conda:
        "../../envs/training.yaml"
    params:
        spec=lambda w: params_file(jobs.adapter(EXPERIMENT, run_of(w))),
        backbone=backbone_folder,
        out=folder_of_output,
        folder=lambda w: paths.Unrecorded(f"--folder {shlex.quote(path)}" if (path := given_adapter(w).folder) else ""),
        work=lambda w: paths.Unrecorded(run_of(w).folder(f"{EXPERIMENT.models}/adapters")),
    shell:
        f"{LAUNCH} "
        "python workflow/scripts/adopt_adapter.py {params.spec:q} --backbone {params.backbone:q} {params.folder}"
        " --work {params.work:q} --out {params.out:q}"
