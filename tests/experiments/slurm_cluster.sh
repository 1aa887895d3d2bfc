#!/usr/bin/env bash
# A Slurm cluster of two nodes with one CPU each, on this host and for one test: slurm_cluster.sh FOLDER. Its daemons, on ports
# that are free, keep all they write in FOLDER, which has a short path; clients need SLURM_CONF=FOLDER/slurm.conf. FOLDER/ready
# appears once jobs can be submitted. The daemons and what they started end with this process, however it ends: it is the first
# one of a process namespace.
set -euo pipefail

folder=$1
if [ "${2:-}" != inside ]; then
  exec unshare --pid --fork --kill-child --mount-proc "$0" "$folder" inside
fi

free_ports() {  # COUNT
  python3 - "$1" <<'PYTHON'
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*[s.getsockname()[1] for s in sockets])
PYTHON
}

host=$(hostname -s)
read -r controller first second < <(free_ports 3)
cat >"$folder/slurm.conf" <<CONF
ClusterName=halflab
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$controller
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
KillWait=2
SlurmdTimeout=5
UnkillableStepTimeout=60
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$first CPUs=1 RealMemory=1000
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$second CPUs=1 RealMemory=1000
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf
mkdir "$folder/state" "$folder/n1" "$folder/n2"
(umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munged.pid" \
  --seed-file="$folder/munge.seed" --log-file="$folder/munged.log" >"$folder/munged.out" 2>&1 &
until [ -S "$folder/munge.socket" ]; do
  sleep 0.05
done
slurmctld -D >"$folder/slurmctld.log" 2>&1 &
for node in n1 n2; do
  slurmd -D -N "$node" >"$folder/$node.log" 2>&1 &
done
until [ "$(sinfo --noheader --Node --states=idle 2>/dev/null | wc -l)" -eq 2 ]; do
  sleep 0.1
done
touch "$folder/ready"
wait
