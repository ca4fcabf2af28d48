# make demo | demo-full | demo-authors | test | test-faults | test-cluster | nightly | lint | install | lock | clean
# make install CUDA=cu126: torch built for that CUDA (docs/install.md); CUDA=cpu: the CPU build.
SHELL := /bin/bash
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
# The build of torch that was asked for last; none: what pip's own index offers. Modules of clusters set CUDA, too.
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

.PHONY: install demo demo-full demo-authors test test-faults test-cluster nightly lint lock clean licences audit-packages

install: $(INSTALLED)

$(INSTALLED): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	rm -f $(VENV)/.installed*
	pip install --quiet "$(TORCH)$(CUDA:%=+%)" $(CUDA:%=--index-url $(TORCH_INDEX)/%)
	pip install --quiet --no-deps --require-hashes -r requirements.lock
	pip install --quiet --no-deps --no-build-isolation --editable .
	entropy-valley check --installation $(CUDA)
	$(if $(CUDA),echo $(CUDA) > $(VENV)/.cuda)
	touch $@

demo: install
	snakemake --workflow-profile demo
	@$(SHOW_DEMO)

demo-full: install
	snakemake --workflow-profile demo --configfile config/demo-full.yaml -- all \
		$(if $(shell command -v pdflatex),results/demo/report.pdf)
	@$(SHOW_DEMO)

demo-authors: install
	snakemake --workflow-profile demo --configfile config/demo-authors.yaml
	entropy-valley show results/demo-authors/tables/main.md

define SHOW_DEMO
printf '\ntables:  results/demo/tables\nfigures: results/demo/figures\n\n' && \
	entropy-valley show results/demo/tables/main.md && \
	printf '%s\n' '' 'Next:' \
	'  results/demo/tables/main.html                            this table in a browser; the others beside it' \
	'  snakemake --workflow-profile demo pages                  each sentence with the outputs of all methods' \
	'  entropy-valley audit --configfile config/demo.yaml       the state of each cell, and why' \
	'  snakemake --workflow-profile demo --report report.zip    all tables and figures as pages, with the workflow'
endef

# One worker more than the two cores it is tried on: some tests wait.
test: install
	python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --timeout 540

# 60 kills, failed writes and races at random moments; ENTROPY_VALLEY_FAULT_SEED=2 chooses others. `make nightly` has
# hundreds.
test-faults: install
	python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m faults tests/faults --timeout 540

# The whole check with two processes; and jobs on a real SLURM: it needs apt's slurm-wlm, munge, slurmdbd and
# mariadb-server-core and mariadb-client-core.
test-cluster: install
	python -m pytest -n 2 --dist loadfile -m cluster --timeout 540

# Ten times the paper's matrix, with jobs that only touch their outputs: most of an hour on two cores. The oldest and
# newest Snakemake, from the package index. And 600 faults, of another seed each night.
nightly: install
	ENTROPY_VALLEY_NIGHTLY=1 python -m pytest tests/workflow/test_nightly.py
	ENTROPY_VALLEY_FAULT_TRIALS=600 ENTROPY_VALLEY_FAULT_SEED=$$(date +%F) $(MAKE) test-faults

# ruff and snakefmt check the style, lint-imports that no import runs upward, snakemake its rules.
lint: install
	ruff check .
	ruff format --check .
	lint-imports
	snakefmt --check Snakefile workflow
	snakemake --lint

# Takes minutes: it asks the index for every file's hash.
lock:
	printf '# All but torch (see Makefile), for Python 3.11 on Linux; made by `make lock`.\n' > requirements.lock.new
	pip-compile --quiet --strip-extras --extra test --generate-hashes --unsafe-package torch --unsafe-package pip \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file - pyproject.toml \
		| sed '/^# WARNING/,$$d' >> requirements.lock.new
	mv requirements.lock.new requirements.lock

# After a change of the lock: which licences its packages have.
licences: install
	python docs/licences.py > docs/licences.md.new
	mv docs/licences.md.new docs/licences.md

# Known weaknesses of the locked packages, by PyPI's advisories; it needs a network. docs/dependencies.md has the results.
audit-packages:
	$(PYTHON) -m venv $(VENV)/pip-audit
	$(VENV)/pip-audit/bin/pip install --quiet pip-audit==2.10.1
	$(VENV)/pip-audit/bin/pip-audit --requirement requirements.lock --disable-pip --no-deps

# It leaves .snakemake: there Snakemake keeps by which params, inputs and code each result was made.
clean:
	rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache build
