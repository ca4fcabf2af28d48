# Do driver, GPUs and memory suffice? Every job on a GPU waits for it.


rule check:
    """Check in a few minutes what GPU jobs need: `entropy-valley check`, with the GPUs of a training."""
    output:
        f"{STAMPS}/check/{{environment}}",
    log:
        f"{R}/logs/check/{{environment}}.log",
    priority: 20  # many jobs wait for it
    conda:
        "../../envs/checking.yaml"
    resources:
        gpu=GPU * subject.processes(EXPERIMENT),
    params:
        spec=lambda w: as_file(subject.of(EXPERIMENT)),
    shell:
        f"{ON_GPU} python workflow/scripts/check.py {{params.spec:q}} --out {{output:q}}"
