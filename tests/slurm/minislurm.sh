#!/usr/bin/env bash
# minislurm.sh start|stop FOLDER: a private SLURM of one node (16 cores, 8 GPUs, both pretended), all of it in FOLDER.
# Needs the packages slurm-wlm and munge; no root. `. FOLDER/env.sh`, then sbatch and squeue are its own.
# A job of the partition `urgent` preempts those of the others, which are then queued again.
set -euo pipefail
command=$1
folder=$(realpath -m "$2")
host=$(hostname -s)
port=${MINISLURM_PORT:-16817}
export SLURM_CONF=$folder/slurm.conf
export PATH=$PATH:/usr/sbin

write_config() {
  mkdir -p "$folder"/{bin,ctld,dev,log,run,spool}
  chmod 755 "$folder" "$folder/run"
  for i in {0..7}; do ln -sfn /dev/null "$folder/dev/gpu$i"; done
  (umask 077 && head -c 1024 /dev/urandom > "$folder/munge.key")
  cat > "$SLURM_CONF" <<CONFIG
ClusterName=mini
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.sock,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/ctld
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000,batch_sched_delay=0
ReturnToService=2
MinJobAge=600
KillWait=2
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=16 Sockets=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=1000000 Gres=gpu:8 State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES DefMemPerCPU=1000 State=UP
PartitionName=gpu Nodes=ALL DefMemPerCPU=1000 State=UP
PartitionName=urgent Nodes=ALL DefMemPerCPU=100 PriorityTier=2 State=UP
CONFIG
  echo "NodeName=$host Name=gpu File=$folder/dev/gpu[0-7]" > "$folder/gres.conf"
  echo "CgroupAutomount=no" > "$folder/cgroup.conf"
  # Jobs start with a clean environment here and there; srun must find this SLURM in it.
  printf '#!/bin/sh\nSLURM_CONF=%s exec /usr/bin/srun "$@"\n' "$SLURM_CONF" > "$folder/bin/srun"
  chmod +x "$folder/bin/srun"
  printf 'export SLURM_CONF=%s PATH=%s:$PATH\n' "$SLURM_CONF" "$folder/bin" > "$folder/env.sh"
}

until_true() { # COMMAND…: within a minute
  for _ in {1..600}; do
    "$@" &> /dev/null && return 0
    sleep 0.1
  done
  echo "$* failed; see $folder/log" >&2
  return 1
}

start() {
  write_config
  munged --key-file="$folder/munge.key" --socket="$folder/run/munge.sock" --pid-file="$folder/run/munged.pid" \
    --log-file="$folder/log/munged.log" --seed-file="$folder/run/munge.seed" --num-threads=2
  slurmctld -c
  slurmd -N "$host"
  until_true is_up
}

is_up() { sinfo --noheader --format=%T | grep -qE 'idle|mixed|alloc'; }

stop() {
  scancel --user "$(id -un)" || true
  for _ in {1..50}; do
    [ -z "$(squeue --noheader)" ] && break
    sleep 0.1
  done
  for daemon in slurmd slurmctld munged; do
    end "$folder/run/$daemon.pid"
  done
  # linuxproc loses what outlives the shell of its job, as Snakemake at times does; a cgroup would not.
  local environments
  environments=$(grep -lszx "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ | xargs -r grep -lsz '^SLURM_JOB_ID=') || true
  for environment in $environments; do
    kill -KILL "$(basename "$(dirname "$environment")")" 2> /dev/null || true
  done
}

end() { # the process that a pid file names, and wait until it is gone
  [ -s "$1" ] || return 0
  local pid
  pid=$(cat "$1")
  kill "$pid" || return 0
  for _ in {1..50}; do
    kill -0 "$pid" 2> /dev/null || return 0
    sleep 0.1
  done
}

case $command in
  start) start ;;
  stop) stop ;;
  *) exit 2 ;;
esac
