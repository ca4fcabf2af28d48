# What several stages say in the same words.


def one_of(names):
    """A wildcard's constraint; one that nothing meets where there are no names."""
    return "|".join(names) or "none"


GPU = int(EXPERIMENT.device == "cuda")  # of a job that uses one
# Length methods whose canvases are another's, dealt anew; and the others.
REASSIGNED = methods.reassigned_methods(EXPERIMENT)
CHOSEN = [name for name in matrix.methods(EXPERIMENT) if name not in REASSIGNED]
AUTOREGRESSIVE = EXPERIMENT.autoregressive.backbones
MASKED = one_of(name for name in EXPERIMENT.backbones if name not in AUTOREGRESSIVE)
# What every job on a device shares.
DEVICE_OPTIONS = paths.Unrecorded(f"--device {EXPERIMENT.device}{'' if EXPERIMENT.store else ' --no-store'}")
# What canvas and decode share: where the model is, where finished work is kept, how it is run.
MODEL_OPTIONS = (
    f"--backbone {{params.backbone:q}} {{params.adapter}} --store {R}/store/{{wildcards.direction}}/{{wildcards.backbone}}/seed{{wildcards.seed}}"
    " {params.options} --threads {threads}"
)


def run_of(wildcards):
    return matrix.Run(wildcards.direction, wildcards.backbone, int(wildcards.seed))


def given_adapter(wildcards):
    """Where a run's adapter is given, with `adapters: released`."""
    return paths.released_adapter(EXPERIMENT, run_of(wildcards))


def given_files(wildcards):
    """The files of a given adapter, watched for changes; ones that are not there are left to the script's clear error."""
    folder = given_adapter(wildcards).folder
    return [f"{folder}/{name}" for name in (adapters.WEIGHTS, adapters.SETTINGS)] if folder else []


def adapter_of(wildcards):
    """The adapter of a run; a zero-shot backbone has none."""
    zero_shot = EXPERIMENT.backbones[wildcards.backbone].zero_shot
    return [] if zero_shot else f"{run_of(wildcards).folder(R)}/adapter"


def adapter_option(wildcards):
    return paths.Unrecorded(f"--adapter {shlex.quote(path)}" if (path := adapter_of(wildcards)) else "")


def statistics_of(wildcards):
    """The length statistics of a run, for the methods that are fitted to it."""
    needed = methods.needs_statistics(EXPERIMENT, wildcards.method)
    return f"{run_of(wildcards).folder(R)}/length_statistics.json" if needed else []


def statistics_option(wildcards):
    return paths.Unrecorded(f"--statistics {shlex.quote(path)}" if (path := statistics_of(wildcards)) else "")


def reassigned_from(wildcards):
    """The canvases whose ratios a control deals to other sentences."""
    method = getattr(EXPERIMENT.length_methods, wildcards.method)
    return f"{run_of(wildcards).folder(R)}/{wildcards.testset}/{method.of}/canvas.jsonl"


def length_head_of(wildcards):
    """The length head of a run, for the methods that ask it."""
    needed = methods.needs_length_head(EXPERIMENT, wildcards.method)
    return f"{run_of(wildcards).folder(R)}/length_head.safetensors" if needed else []


def length_head_option(wildcards):
    return paths.Unrecorded(f"--length-head {shlex.quote(path)}" if (path := length_head_of(wildcards)) else "")


def canvas_gpu(wildcards):
    """No GPU for canvases that need no model."""
    return GPU if methods.canvas_needs_model(EXPERIMENT, wildcards.method) else 0


def backbone_folder(wildcards):
    """Where the checkpoint is."""
    return paths.Unrecorded(paths.backbone_folder(EXPERIMENT, wildcards.backbone))


def backbone_ready(wildcards):
    """What says that the checkpoint is there: itself where it is made here, else its manifest, which stays in its place
    when the checkpoint moves."""
    made_here = EXPERIMENT.backbones[wildcards.backbone].pretraining
    origin = paths.checkpoint_of(EXPERIMENT, wildcards.backbone)
    return expand((rules.pretrain if made_here else rules.fetch_backbone).output, backbone=origin)


def by_direction(wildcards, paths):
    """DIRECTION=PATH, as pretrain.py wants its corpora."""
    return [f"{name}={path}" for name, path in zip(jobs.pretraining_directions(EXPERIMENT, wildcards.backbone), paths)]


def own_files(name):
    """A user's own text files, watched for changes; one that is not there is left to the script's clear error."""
    source = EXPERIMENT.sources[name]
    paths = [source.source, source.target] if source.name == "files" else []
    return [path for path in paths if os.path.exists(path)]
