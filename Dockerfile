# The environment of `make install` as an image, with the versions of the lock: docs/running.md
#   docker build --tag entropy-valley .                                  GPUs, CUDA 13.0
#   docker build --tag entropy-valley --build-arg CUDA=cpu .             CPUs
#   --build-arg PLUGINS="snakemake-executor-plugin-kubernetes snakemake-storage-plugin-s3"     of Snakemake, for a cloud
FROM python:3.11-slim-bookworm
ARG CUDA=cu130
ARG PLUGINS=""
# gcc compiles kernels on a GPU, and the font shows Chinese sentences in figures.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential git fonts-noto-cjk \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/entropy-valley
COPY . .
RUN make install CUDA=$CUDA PYTHON=python3.11 VENV=/opt/venv \
    && if [ -n "$PLUGINS" ]; then /opt/venv/bin/pip install --quiet $PLUGINS; fi
ENV PATH=/opt/venv/bin:$PATH
