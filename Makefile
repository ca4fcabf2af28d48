# make demo | demo-full | demo-authors | findings | ship | install | lint | lock | licences | clean
# make test | test-instructions | test-faults | test-cluster | test-core | test-cuda | nightly
# make install CUDA=cu126: torch built for that CUDA (docs/running.md); CUDA=cpu: the CPU build.
SHELL := /bin/bash
# The first of these that runs; any other by PYTHON=….
IT_FITS := -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2> /dev/null
PYTHON ?= $(shell for one in python3.11 python3.12 python3; do $$one $(IT_FITS) && echo $$one && break; done)
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
# The build of torch that was asked for last; none: see INSTALL_TORCH. Modules of clusters set CUDA, too.
ifneq ($(origin CUDA),command line)
CUDA := $(shell cat $(VENV)/.cuda 2> /dev/null)
endif
INSTALLED := $(VENV)/.installed$(CUDA:%=-%)
# The lock leaves torch out: each of its builds (CPU, CUDA versions) has its own hashes.
TORCH_INDEX := https://download.pytorch.org/whl
TORCH := $(shell sed -n 's/.*"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
export PATH := $(BIN):$(PATH)
# Small models on few cores are fastest with one thread a job.
export OMP_NUM_THREADS ?= 1

.PHONY: install demo demo-full demo-authors findings ship test test-instructions test-faults test-cluster test-core test-cuda nightly lint lock clean licences audit-packages

install: $(INSTALLED)

# Without CUDA=…: where there is no NVIDIA driver, the CPU build, because the one of pip's own index brings gigabytes of
# CUDA; and that one where the CPU build cannot be had.
ifneq ($(CUDA),)
INSTALL_TORCH = pip install --quiet "$(TORCH)+$(CUDA)" --index-url $(TORCH_INDEX)/$(CUDA)
else ifneq ($(shell command -v nvidia-smi),)
INSTALL_TORCH = pip install --quiet "$(TORCH)"
else
INSTALL_TORCH = echo "No NVIDIA driver here, so torch is installed for CPUs. For GPUs: make install CUDA=cu126" && \
	{ pip install --quiet --retries 1 "$(TORCH)+cpu" --index-url $(TORCH_INDEX)/cpu || pip install --quiet "$(TORCH)"; }
endif

$(INSTALLED): pyproject.toml requirements.lock
	@$(or $(PYTHON),false) $(IT_FITS) || { echo "Python 3.11 or 3.12 is needed$(PYTHON:%=, and % is neither):" \
		"apt-get install python3-venv, or PYTHON=/path/to/python3.12" && exit 1; }
	$(PYTHON) -m venv $(VENV)
	rm -f $(VENV)/.installed*
	@$(INSTALL_TORCH)
	pip install --quiet --no-deps --require-hashes -r requirements.lock
	pip install --quiet --no-deps --no-build-isolation --editable .
	entropy-valley check --installation $(CUDA)
	$(if $(CUDA),echo $(CUDA) > $(VENV)/.cuda)
	touch $@

# Four to seven minutes on two quiet cores; the last line names the page to open.
demo: install
	snakemake --workflow-profile demo all pages live
	@$(call SHOW_DEMO,demo)

demo-full: install
	snakemake --workflow-profile demo --configfile config/demo-full.yaml -- all pages live \
		$(if $(shell command -v pdflatex),results/demo-full/report.pdf)
	@$(call SHOW_DEMO,demo-full)

demo-authors: install
	snakemake --workflow-profile demo --configfile config/demo-authors.yaml
	entropy-valley show results/demo-authors/tables/main.csv

# The numbers of README and docs, on two cores: from three pre-trainings, about one and a half hours, from three others,
# about one, from that of the package, a quarter, from Tatoeba, which is downloaded, about one, and from the human
# sentences of config/human.yaml, half an hour. What they say is then written into the pages: read the changes, and the
# claims beside them.
findings: install
	snakemake --workflow-profile demo -- results/demo/tables/main.csv
	snakemake --workflow-profile demo --configfile config/findings.yaml
	snakemake --workflow-profile demo --configfile config/unseen.yaml
	snakemake --workflow-profile demo --configfile config/demo-full.yaml -- \
		$(patsubst docs/numbers/results/demo-full/%,results/demo-full/tables/%,$(wildcard docs/numbers/results/demo-full/*.csv))
	snakemake --cores 2 --configfile config/tatoeba.yaml
	snakemake --cores 2 --configfile config/human.yaml
	python docs/keep_tables.py results/demo config/demo.yaml
	python docs/keep_tables.py results/findings config/findings.yaml
	python docs/keep_tables.py results/unseen config/unseen.yaml
	python docs/keep_tables.py results/demo-full config/demo-full.yaml
	python docs/keep_tables.py results/tatoeba config/tatoeba.yaml
	python docs/keep_tables.py results/human config/human.yaml
	python docs/lead_by_ratio.py
	python docs/other_weights.py
	python docs/check_numbers.py --write docs/numbers/*.txt

# The tiny models and their adapters, as they come with the package: that of the grammar in 20 minutes, that of human
# sentences (config/human.yaml says what it reads) in two hours. `make demo` has other numbers after it.
ADAPTERS = $(foreach direction,en-zh zh-en en-de,results/$(1)/$(direction)/llada-tiny/seed1/adapter/adapter.json)
ship: install
	snakemake --workflow-profile demo --configfile config/findings.yaml -- \
		results/findings/backbones/llada-tiny/seed1/checkpoint.json
	python .ci/ship.py llada-tiny checkpoint results/findings/backbones/llada-tiny/seed1
	snakemake --workflow-profile demo -- $(call ADAPTERS,demo)
	python .ci/ship.py llada-tiny adapters results/demo
	snakemake --cores 2 --configfile config/human.yaml --config "backbones={llada-tiny: {pretrained: null}}" -- \
		results/human/backbones/llada-tiny/seed1/checkpoint.json
	python .ci/ship.py llada-tiny-human checkpoint results/human/backbones/llada-tiny/seed1
	snakemake --cores 2 --configfile config/human.yaml -- $(call ADAPTERS,human)
	python .ci/ship.py llada-tiny-human adapters results/human
	python .ci/ship.py llada-tiny-human page docs/translate.md

define SHOW_DEMO
entropy-valley show results/$(1)/tables/main.csv && \
	printf '%s\n' '' \
	'tables:   results/$(1)/tables    main.html is the main table in a browser; full_significance.md has the paired tests' \
	'figures:  results/$(1)/figures   hero.pdf, entropy_valley.pdf and others' \
	'states:   entropy-valley audit --configfile config/$(1).yaml' \
	'Each sentence with the outputs of all methods; open it in a browser:' \
	"file://$$PWD/$$(ls results/$(1)/pages/*.html | tail -1)" \
	'Type a sentence and watch it being translated, in a browser and without a network:' \
	"file://$$PWD/results/$(1)/live.html"
endef

# One worker more than the two cores it is tried on: some tests wait.
test: install
	python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --timeout 540

# Tests of numbers, with fewer of the CPU's instruction sets: what another CPU rounds otherwise must not fail them.
NUMERIC := tests/test_golden.py tests/test_products.py tests/demo/test_shipped.py tests/training/test_sft.py \
	$(addprefix tests/decoding/test_,engine.py engine_properties.py prompts.py translations.py variable_length.py)
test-instructions: export ATEN_CPU_CAPABILITY := default
test-instructions: export MKL_ENABLE_INSTRUCTIONS := AVX2
test-instructions: export ONEDNN_MAX_CPU_ISA := AVX2
test-instructions: install
	python -c 'import torch; assert torch.backends.cpu.get_cpu_capability() == "DEFAULT"'
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(NUMERIC) --timeout 540

# 60 kills, failed writes and races at random moments; ENTROPY_VALLEY_FAULT_SEED=2 chooses others. `make nightly` has
# hundreds.
test-faults: install
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m faults tests/faults --timeout 540

# The thorough check; training with two processes, and through a compiler; and jobs on a real SLURM: it needs apt's
# slurm-wlm and munge. Two workers more than the two cores it is tried on: most tests wait.
test-cluster: install
	python -m pytest -n 4 --dist loadgroup -m cluster $$(grep -rl --include="*.py" mark.cluster tests) --timeout 540

# The oldest and newest Snakemake and a storage plugin, which needs rsync, from the package index. The live page on 70
# sentences. The bytes of compiled passes. And 600 faults, of another seed each night.
nightly: install
	ENTROPY_VALLEY_NIGHTLY=1 python -m pytest tests/workflow/test_nightly.py tests/pages/test_live_page.py \
		tests/demo/test_shipped.py tests/benchmarks/test_benchmarks.py
	ENTROPY_VALLEY_FAULT_TRIALS=600 ENTROPY_VALLEY_FAULT_SEED=$$(date +%F) $(MAKE) test-faults
	$(MAKE) test-core test-cuda

# The core as on a machine with a torch of its own: the oldest torch, the newest transformers, numpy 2. This torch is a
# build for CUDA (4.6 GB), which needs no GPU to be imported: it also rehearses what only GPUs reach, without COMET.
test-core:
	python3 -m venv .venv-core
	.venv-core/bin/pip install -q torch==2.11.0 transformers==5.17.0 'numpy>=2' 'pandas>=3' peft pydantic pyyaml jinja2 \
		huggingface_hub scipy statsmodels sacrebleu pytest hypothesis
	PYTHONPATH=src .venv-core/bin/python -m pytest tests/test_cuda_rehearsal.py tests/model tests/decoding/test_engine.py \
		tests/decoding/test_autoregressive.py

# The rest of this rehearsal: COMET, whose package needs the numpy of the lock.
test-cuda:
	$(PYTHON) -m venv .venv-cuda
	.venv-cuda/bin/pip install -q "$(TORCH)"
	.venv-cuda/bin/pip install -q --no-deps --require-hashes -r requirements.lock
	.venv-cuda/bin/python -c 'import torch; assert torch.version.cuda, "this build of torch is for CPUs"'
	PYTHONPATH=src .venv-cuda/bin/python -m pytest tests/test_cuda_rehearsal.py -k comet

# ruff and snakefmt check the style, mypy that annotations are true, lint-imports that no import runs upward, weight.py
# that no package outgrows its budget, snakemake its rules. Last, that tests have the same names in each process that
# collects them, or pytest's workers stop: no name holds the time, a random number, the order of a set or a path.
COLLECT := python -m pytest --collect-only -m '' -p no:cacheprovider
lint: install
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	python .ci/weight.py
	snakefmt --check Snakefile workflow
	snakemake --lint
	diff <(PYTHONHASHSEED=1 TMPDIR=/tmp $(COLLECT) | grep ::) <(sleep 1 && PYTHONHASHSEED=2 $(COLLECT) | grep ::)

# Takes minutes: it asks the index for every file's hash.
lock:
	printf '# All but torch (see Makefile), for Python 3.11 and 3.12 on Linux; made by `make lock`.\n' > requirements.lock.new
	pip-compile --quiet --strip-extras --extra workflow --extra test --generate-hashes --unsafe-package torch --unsafe-package pip \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file - pyproject.toml \
		| sed '/^# WARNING/,$$d' >> requirements.lock.new
	mv requirements.lock.new requirements.lock

# After a change of the lock: which licences its packages have, in LICENCES.md.
licences: install
	python .ci/licences.py

# Known weaknesses of the locked packages, by PyPI's advisories; it needs a network. DEPENDENCIES.md says what was found.
audit-packages:
	$(PYTHON) -m venv $(VENV)/pip-audit
	$(VENV)/pip-audit/bin/pip install --quiet pip-audit==2.10.1
	$(VENV)/pip-audit/bin/pip-audit --requirement requirements.lock --disable-pip --no-deps

# It leaves .snakemake: there Snakemake keeps by which params, inputs and code each result was made.
clean:
	rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache build
