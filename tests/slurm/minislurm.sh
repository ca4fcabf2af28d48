#!/usr/bin/env bash
# minislurm.sh start|stop FOLDER: a private SLURM of one node (16 cores, 8 GPUs, both pretended), all of it in FOLDER.
# Needs the packages slurm-wlm and munge; no root, no database. `. FOLDER/env.sh`, then sbatch and squeue are its own.
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
AuthInfo=socket=$folder/run/munge.sock
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
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=100000,batch_sched_delay=0
ReturnToService=2
MinJobAge=600
KillWait=2
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=16 Sockets=1 CoresPerSocket=16 ThreadsPerCore=1 RealMemory=1000000 Gres=gpu:8 State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES DefMemPerCPU=1000 State=UP
PartitionName=gpu Nodes=ALL DefMemPerCPU=1000 State=UP
CONFIG
  echo "NodeName=$host Name=gpu File=$folder/dev/gpu[0-7]" > "$folder/gres.conf"
  echo "CgroupAutomount=no" > "$folder/cgroup.conf"
  # Jobs start with a clean environment here and there; srun must find this SLURM in it.
  printf '#!/bin/sh\nSLURM_CONF=%s exec /usr/bin/srun "$@"\n' "$SLURM_CONF" > "$folder/bin/srun"
  chmod +x "$folder/bin/srun"
  printf 'export SLURM_CONF=%s PATH=%s:$PATH\n' "$SLURM_CONF" "$folder/bin" > "$folder/env.sh"
}

start() {
  write_config
  munged --key-file="$folder/munge.key" --socket="$folder/run/munge.sock" --pid-file="$folder/run/munged.pid" \
    --log-file="$folder/log/munged.log" --seed-file="$folder/run/munge.seed" --num-threads=2
  slurmctld -c
  slurmd -N "$host"
  for _ in {1..200}; do
    sinfo --noheader --format=%T 2> /dev/null | grep -qE 'idle|mixed|alloc' && return 0
    sleep 0.1
  done
  echo "slurm did not come up; see $folder/log" >&2
  return 1
}

stop() {
  scancel --user "$(id -un)" || true
  for _ in {1..50}; do
    [ -z "$(squeue --noheader)" ] && break
    sleep 0.1
  done
  for daemon in slurmd slurmctld munged; do
    end "$folder/run/$daemon.pid"
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
