#!/bin/bash
# sbatch profiles/slurm/head.sh results/tables/main.tex         Snakemake as a job of the cluster: docs/running.md
# For you to edit: a partition, an account, and the longest time limit that they grant.
#SBATCH --time=1-00:00:00 --cpus-per-task=4 --mem=8G
#SBATCH --job-name=entropy-valley --output=entropy-valley-%j.log --open-mode=append
#SBATCH --requeue --signal=B:USR1@600  # ten minutes before the limit
set -um                                # m: a process in the background does not ignore SIGINT

id=$SLURM_JOB_ID restarts=${SLURM_RESTART_COUNT:-0}
for name in "${!SLURM_@}"; do          # else the jobs that it submits would inherit its own requests
  [ "$name" = SLURM_CONF ] || unset "$name"
done

if ((restarts)); then                  # it did not stop by itself: its jobs may run on, and the folder is locked
  squeue --me --noheader --format="%i %j" | sed -n "s/ head${id}_.*//p" | xargs --no-run-if-empty scancel
  snakemake --profile slurm --unlock "$@"
fi

stop() {                               # as Ctrl-C does: Snakemake cancels its jobs, and they resume later
  kill -INT -- "-$!"
  wait $!
}
snakemake --profile slurm --slurm-jobname-prefix "head$id" "$@" &
trap stop TERM                         # scancel, or another job preempts it
trap 'stop; scontrol requeue "$id"' USR1
wait $!
