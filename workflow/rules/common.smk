# What several stages share.


def one_of(names):
    """A wildcard's constraint: one of the names; without names it matches nothing."""
    return "|".join(names) or "none"


# The folder of results as a command names it; Snakemake itself quotes what it fills in as `:q`.
QUOTED = shlex.quote(R)
# How a job's command is started: with its log, and with the GPUs that it takes. Models are downloaded before.
_LAUNCH = f"python -m entropy_valley.launch --results {QUOTED} --log {{log:q}}"
LAUNCH = f"{_LAUNCH} --"
ON_GPU = f"HF_HUB_OFFLINE=1 {_LAUNCH} --gpus {{resources.gpu}} --"
# The folders of a run, of what belongs to one of its test sets, and of a method's translations.
RUN = f"{R}/{{direction}}/{{backbone}}/seed{{seed}}"
TESTED = f"{RUN}/{{testset}}"
CELL = f"{TESTED}/{{method}}/{{order}}-T{{steps}}"
GPU = int(EXPERIMENT.device == "cuda")  # of a job that uses one
# Length methods that reassign the canvases of another one; and the others.
REASSIGNED = methods.reassigned_methods(EXPERIMENT)
CHOSEN = [name for name in matrix.methods(EXPERIMENT) if name not in REASSIGNED]
AUTOREGRESSIVE = EXPERIMENT.autoregressive.backbones
MASKED = one_of(name for name in EXPERIMENT.backbones if name not in AUTOREGRESSIVE)
# What every job on a device shares.
DEVICE_OPTIONS = f"--device {EXPERIMENT.device}{'' if EXPERIMENT.store else ' --no-store'}"
# What canvas and decode share: where the model is, where finished work is kept, how it is run.
OF_RUN = "{wildcards.direction}/{wildcards.backbone}/seed{wildcards.seed}"
STORE = f"{QUOTED}/store/{OF_RUN}"
# A store of their own: no other job asks for canvases of training pairs, and each would read past them.
STATISTICS_STORE = f"{QUOTED}/work/length_statistics/{OF_RUN}"
MODEL_OPTIONS = (
    f"--backbone {{params.backbone:q}} {{params.adapter}} --store {STORE} {{params.options}} --threads {{threads}}"
)
STATISTICS_OPTIONS = MODEL_OPTIONS.replace(STORE, STATISTICS_STORE)


def targets():
    """What the user asked of the run, also within one of its jobs; none for the default. Known once rules are read."""
    return sorted(workflow.dag_settings.targets) if workflow.is_main_process else SESSION.targets


def params_file(text):
    """A rule's params: their text is what Snakemake compares, a command gets the path of a file with it."""
    return paths.ParamsFile(text, f"{R}/params", lambda: workflow.dryrun)


def as_file(value):
    """A value that a script gets as a file, and that changes no number."""
    return paths.Unrecorded(params_file(files.canonical(value)))


def run_of(wildcards):
    return matrix.Run.named(wildcards.direction, wildcards.backbone, wildcards.seed)


def given_adapter(wildcards):
    """Where a run's adapter is given, with `adapters: released`."""
    return paths.released_adapter(EXPERIMENT, run_of(wildcards))


def given_files(wildcards):
    """The files of a given adapter, watched for changes. If some are missing, the script says so."""
    folder = given_adapter(wildcards).folder
    return [f"{folder}/{name}" for name in (adapters.WEIGHTS, adapters.SETTINGS)] if folder else []


def folder_of_output(wildcards, output):
    """Where a job writes a whole folder. Its output is the one file that says what the folder holds: a rename puts it
    there with the others, and dependents compare its digests instead of the times of large files."""
    return paths.Unrecorded(os.path.dirname(output[0]))


def adapter_folder(wildcards):
    """The adapter of a run, or that of the backbone which has its adapters; a zero-shot backbone has none."""
    return paths.adapter_folder(EXPERIMENT, run_of(wildcards))


def adapter_of(wildcards):
    """The file that says what the adapter is."""
    return f"{folder}/{adapters.FACTS}" if (folder := adapter_folder(wildcards)) else []


def reassigned_from(wildcards):
    """The canvases that a control reassigns to other sentences."""
    method = getattr(EXPERIMENT.length_methods, wildcards.method)
    return f"{run_of(wildcards).folder(R)}/{wildcards.testset}/{method.of}/canvas.jsonl"


def file_for_method(name, needs):
    """A file of the run, for the methods that need it."""
    return lambda wildcards: f"{run_of(wildcards).folder(R)}/{name}" if needs(EXPERIMENT, wildcards.method) else []


statistics_of = file_for_method("length_statistics.json", methods.needs_statistics)
length_head_of = file_for_method("length_head.safetensors", methods.needs_length_head)


def given(name, path):
    """A script's option for a path; none where there is no path."""
    return paths.Unrecorded(f"{name} {shlex.quote(str(path))}" if path else "")


def device_options(wildcards, input):
    """How a job runs; one that waits for the job that loads the model reads the store alone."""
    return paths.Unrecorded(f"{DEVICE_OPTIONS}{' --from-store' if input.get('stamps') else ''}")


def model_options(wildcards, input):
    """The same of a job that reads a checkpoint."""
    return paths.Unrecorded(f"{device_options(wildcards, input)} {manifest_option(wildcards)}")


def model_gpu(wildcards, input):
    """A GPU for a job that loads the model: none for one that waits for the job that does, see ``asked.smk``."""
    return 0 if input.stamps else GPU


def canvas_gpu(wildcards, input):
    """No GPU for canvases that need no model."""
    return model_gpu(wildcards, input) if methods.canvas_needs_model(EXPERIMENT, wildcards.method) else 0


def tested_options(wildcards):
    """The test sets with whose references a training's backbone must cope: better told before it than after it."""
    found = measured_by_references().get((wildcards.direction, wildcards.backbone, wildcards.seed), ())
    return paths.Unrecorded(" ".join(f"--tested {shlex.quote(path)}" for path in found))


def backbone_folder(wildcards):
    """Where the checkpoint is."""
    return paths.Unrecorded(paths.backbone_folder(EXPERIMENT, wildcards.backbone))


def backbone_ready(wildcards):
    """The file that stands for the checkpoint; that of a downloaded one stays where it is when the checkpoint moves."""
    return checkpoint_file(wildcards.backbone)


@functools.cache  # for each of thousands of jobs, `expand` takes longer than all else here
def checkpoint_file(backbone):
    made_here = EXPERIMENT.backbones[backbone].pretraining
    origin = paths.checkpoint_of(EXPERIMENT, backbone)
    return expand((rules.pretrain if made_here else rules.fetch_backbone).output, backbone=origin)


def manifest_option(wildcards):
    """What says how the files of a checkpoint were that was downloaded, or is the user's own; one that was made here
    has a record."""
    made_here = EXPERIMENT.backbones[wildcards.backbone].pretraining
    return given("--manifest", None if made_here else checkpoint_file(wildcards.backbone)[0])


def checkpoint_options(backbones):
    """Where the checkpoints of several backbones are."""
    given = [f"--backbone {shlex.quote(f'{name}={paths.backbone_folder(EXPERIMENT, name)}')}" for name in backbones]
    return paths.Unrecorded(" ".join(given))


# The checkpoint as inputs of a job that loads it, and the params with which MODEL_OPTIONS names it.
CHECKPOINT = dict(adapter=adapter_of, backbone=backbone_ready)
MODEL_PARAMS = dict(
    backbone=backbone_folder,
    adapter=lambda w: given("--adapter", adapter_folder(w)),
    options=model_options,
)
# The same of a job that runs a length method: some read a file of their run.
METHOD_FILES = dict(**CHECKPOINT, statistics=statistics_of, length_head=length_head_of)
METHOD_PARAMS = dict(
    **MODEL_PARAMS,
    statistics=lambda w: given("--statistics", statistics_of(w)),
    length_head=lambda w: given("--length-head", length_head_of(w)),
)


def by_direction(wildcards, paths):
    """DIRECTION=PATH, as pretrain.py wants its corpora."""
    return [f"{name}={path}" for name, path in zip(jobs.pretraining_directions(EXPERIMENT, wildcards.backbone), paths)]


def own_files(name, direction, *splits):
    """A user's own files, watched for changes. If one is missing, the script says so."""
    return [path for path in EXPERIMENT.sources[name].watched(direction, *splits) if os.path.exists(path)]


def dataset_of(source):
    """The file that says which commit a source's data set is; none where nothing is downloaded."""
    name = paths.dataset_of(EXPERIMENT, source)
    return expand(rules.fetch_dataset.output, dataset=name) if name else []


def dataset_options(source, input):
    """Where a downloaded data set is, and what says so; how many rows a source must have."""
    name, total = paths.dataset_of(EXPERIMENT, source), EXPERIMENT.sources[source].total
    parts = ["--dataset", *input.dataset, "--folder", paths.dataset_folder(EXPERIMENT, name)] if name else []
    parts += ["--rows", total] if total else []
    parts.append(f"--commits={R}/datasets")
    return paths.Unrecorded(shlex.join(map(str, parts)))


# The metrics that have a COMET checkpoint, and the checkpoints that are downloaded.
CHECKPOINTS = scoring.checkpoints(EXPERIMENT.scoring)
DOWNLOADED_COMETS = paths.downloaded_comets(EXPERIMENT)


def comet_ready(wildcards):
    """What says that the metrics' checkpoints are there; a user's own ``.ckpt`` is no rule's output."""
    return comet_files()


@functools.cache
def comet_files():
    trained = rules.train_comet.output if EXPERIMENT.scoring.comet.training else []
    return trained + expand(rules.fetch_comet.output, checkpoint=DOWNLOADED_COMETS)


def comet_repository(wildcards):
    return CHECKPOINTS[DOWNLOADED_COMETS[wildcards.checkpoint]].checkpoint


def comet_options(wildcards):
    """Where a downloaded COMET checkpoint goes, and what of it is asked for."""
    name = DOWNLOADED_COMETS[wildcards.checkpoint]
    folder, revision = paths.comet_folder(EXPERIMENT, name), CHECKPOINTS[name].revision
    section = name if name == "comet" else f"metrics.{name}"
    former = f"{EXPERIMENT.models}/{name}"  # of earlier versions
    parts = [
        "--folder",
        folder,
        "--former",
        former,
        "--section",
        section,
        *(["--revision", revision] if revision else []),
    ]
    return paths.Unrecorded(shlex.join(parts))


def scoring_options(wildcards, input):
    """How a job scores, and where the checkpoints of the further metrics are."""
    folders = {name: paths.comet_folder(EXPERIMENT, name) for name in CHECKPOINTS if name != "comet"}
    further = [f"--checkpoint {shlex.quote(f'{name}={folder}')}" for name, folder in folders.items()]
    return paths.Unrecorded(" ".join([str(device_options(wildcards, input)), *further]))


def score_gpu(wildcards, input):
    """No GPU for a cell whose scores come from the store, unless a user's own metric may want one."""
    own = any(isinstance(metric, scoring.OwnMetric) for metric in EXPERIMENT.scoring.metrics.values())
    return 0 if input.stamps and not own else GPU


def evaluated(wildcards):
    """The two cells whose outputs annotators of a direction compare."""
    return matrix.evaluated_cells(EXPERIMENT, wildcards.direction)


def in_folder(folder, *endings):
    """The reports of a folder that have these endings, by file."""
    return {
        path.split("/")[1]: report
        for path, report in REPORTS.items()
        if path.startswith(folder) and report.endings == endings
    }


def in_report(path, kind, shown="page"):
    """Marks a file for Snakemake's report. `kind` is tables or figures, and the wildcard's name with an s."""
    return report(
        update(path),
        caption="../report/caption.rst",
        category=kind.capitalize(),
        subcategory=lambda w: snakemake_report.section(f"{kind}/{next(iter(w))}"),
        labels=lambda w: {"name": next(iter(w)), **({"as": shown} if kind == "tables" else {})},
    )


TABLES = in_folder("tables", "tex", "float.tex", "md", "html", "csv")
COMPARISONS = in_folder("tables", "html", "md", "csv")
FIGURES = in_folder("figures", "pdf", "png", "csv")
DOCUMENTED = [f"{R}/{name}" for name in document.read(READY)]
