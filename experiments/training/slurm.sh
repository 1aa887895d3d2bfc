# shellcheck shell=bash disable=SC2016,SC2154  # variables of the batch files, and of lab
# `./lab slurm`: sourced by lab. Writes the batch files of a sweep in shards and submits them where asked. All that they need
# stands in them, so that one may change them and submit them by hand.

# What sbatch takes and both jobs get.
slurm_passed='account constraint cpus-per-task exclude gres mail-type mail-user mem mem-per-cpu nice nodelist partition qos
  reservation time'
slurm_most_shards=1000  # unless asked for: what Slurm allows of an array where nobody has set its limit
slurm_shortest_s=180    # Slurm tells a job of its time limit 60 s before, by its clock up to 60 s earlier

slurm_refuse() {  # OPTION VALUE ALLOWED
  stop 2 "slurm: --$1: '$2' is given; must be $3"
}

# The seconds of a time limit as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on.
slurm_seconds() {  # TIME
  local number='([0-9]{1,6})' days=0 hours=0 minutes=0 seconds=0
  if [[ $1 =~ ^$number-$number(:$number(:$number)?)?$ ]]; then
    days=${BASH_REMATCH[1]} hours=${BASH_REMATCH[2]} minutes=${BASH_REMATCH[4]:-0} seconds=${BASH_REMATCH[6]:-0}
  elif [[ $1 =~ ^$number:$number:$number$ ]]; then
    hours=${BASH_REMATCH[1]} minutes=${BASH_REMATCH[2]} seconds=${BASH_REMATCH[3]}
  elif [[ $1 =~ ^$number(:$number)?$ ]]; then
    minutes=${BASH_REMATCH[1]} seconds=${BASH_REMATCH[3]:-0}
  else
    return 1
  fi
  echo $(((10#$days * 24 + 10#$hours) * 3600 + 10#$minutes * 60 + 10#$seconds))
}

slurm_check_options() {
  local name seconds time=${option[time]:-} threads=${option[cpus-per-task]}
  [[ $threads =~ ^[1-9][0-9]{0,3}$ ]] || slurm_refuse cpus-per-task "$threads" '1 to 9999'
  if [ -n "$time" ]; then
    seconds=$(slurm_seconds "$time") || slurm_refuse time "$time" 'such as 30, 1:30:00 or 2-12'
    [ "$seconds" -ge $slurm_shortest_s ] || slurm_refuse time "$time" 'at least 3, which is minutes'
  fi
  for name in $slurm_passed out; do slurm_check_text "$name" "${option[$name]:-}"; done
}

# What stands in a batch file between quotes.
slurm_check_text() {  # NAME VALUE
  [[ $2 != *[[:cntrl:]\"\\]* ]] || slurm_refuse "$1" "${2//[[:cntrl:]]/ }" 'without quotes, backslashes and line breaks'
}

# Finds --out in the command, and refuses what the batch files add.
slurm_check_command() {  # WORDS...
  local word previous='' sweep='must be a sweep, whose runs have a process each (a run on ranks: docs/scale_out.md)'
  [ $# -gt 0 ] ||
    stop 2 "slurm: no command is given; must be such as ./lab slurm --time 60 -- build/bin/training --sweep --seeds 5"
  case ${1##*/} in
    mpirun* | mpiexec* | srun)
      stop 2 "slurm: '${1##*/}' is in the command; $sweep"
      ;;
  esac
  command -v -- "$1" >/dev/null ||
    stop 2 "slurm: '$1' is no program; must be such as build/bin/training, which ./lab build makes: run it first"
  for word in "$@"; do
    case $word in
      --mpi | --mpi-library | --mpi-library=*)
        stop 2 "slurm: ${word%%=*}: is in the command; $sweep"
        ;;
      --shard | --shard=* | --merge | --cells)
        stop 2 "slurm: ${word%%=*}: is in the command; must be left to the batch files"
        ;;
      --threads | --threads=*)
        stop 2 "slurm: --threads: is in the command; must be --cpus-per-task, before it"
        ;;
      --out=*) option[own-out]=${word#*=} ;;
    esac
    [ "$previous" != --out ] || option[own-out]=$word
    previous=$word
  done
  slurm_check_text out "${option[own-out]:-}"
  [ -z "${option[own-out]:-}" ] || [ -z "${option[out]:-}" ] || stop 2 'slurm: --out: is given twice; must be given once'
}

# The program itself says which cells it would make, or what is wrong with its options.
slurm_count_cells() {  # COMMAND...
  local said
  said=$("$@" --cells 2>&1 </dev/null) || stop 2 "slurm: ${said##*$'\n'}"
  wc -l <<<"$said"
}

# As one would type it.
slurm_words() {  # WORDS...
  local word words=()
  for word in "$@"; do
    [[ $word =~ ^[A-Za-z0-9_./:=,@+-]+$ ]] || word=${word@Q}
    words+=("$word")
  done
  echo "${words[*]}"
}

slurm_head() {  # JOB LOG
  local name
  printf '#!/usr/bin/env bash\n'
  printf '#SBATCH --%s\n' "job-name=$1" "chdir=\"$PWD\"" "output=\"$2\"" open-mode=append requeue ntasks=1
  for name in $slurm_passed; do
    [ -z "${option[$name]:-}" ] || printf '#SBATCH --%s="%s"\n' "$name" "${option[$name]}"
  done
}

slurm_shards() {  # FILES "COMMAND"
  slurm_head halflab "${1//%/%%}/shard-%a.log"
  cat <<SCRIPT
#SBATCH --array=1-${option[shards]}
#SBATCH --signal=B:USR1@60

# Told by SIGUSR1, training writes checkpoints and ends. Slurm tells this script, a minute before the time limit, and so may
# you: scancel --batch --signal=USR1 JOB. The job then queues again and goes on from the checkpoints.
told=
training=
tell() {
  told=yes
  [ -z "\$training" ] || kill -USR1 "\$training" 2>/dev/null
}
trap tell USR1
[ -z "\${SLURM_RESTART_COUNT:-}" ] || echo "started again, for the \${SLURM_RESTART_COUNT}. time"
$2 --shard "\$SLURM_ARRAY_TASK_ID/${option[shards]}" --threads "\$SLURM_CPUS_PER_TASK" &
training=\$!
[ -z "\$told" ] || kill -USR1 "\$training"
while kill -0 "\$training" 2>/dev/null; do
  wait "\$training" # until it ends or a signal comes
done
wait "\$training"
code=\$?
if [ -n "\$told" ] && [ "\$code" -ne 0 ]; then
  scontrol requeue "\$SLURM_JOB_ID"
fi
exit "\$code"
SCRIPT
}

slurm_merge() {  # FILES "COMMAND" OUT
  slurm_head halflab-merge "${1//%/%%}/merge.log"
  printf '\n%s --merge %s --threads "$SLURM_CPUS_PER_TASK"\n' "$2" "$(slurm_words "$3")"
}

# Prints the job's number.
slurm_submit() {  # ARGUMENTS...
  local said
  said=$(sbatch --parsable "$@" 2>&1) || {
    said=${said##*$'\n'}
    stop 2 "slurm: ${*: -1} was not submitted: ${said#sbatch: error: }"
  }
  said=${said##*$'\n'}
  echo "${said%%;*}"
}

# Checks all and writes the files into the folder slurm of the results, $out.
slurm_write() {  # COMMAND...
  local cells words
  slurm_check_options
  slurm_check_command "$@"
  cells=$(slurm_count_cells "$@") || exit
  : "${option[shards]:=$((cells < slurm_most_shards ? cells : slurm_most_shards))}"
  { [[ ${option[shards]} =~ ^[1-9][0-9]{0,6}$ ]] && [ "${option[shards]}" -le "$cells" ]; } ||
    slurm_refuse shards "${option[shards]}" "1 to $cells, the cells of the sweep"
  out=${option[own-out]:-${option[out]:-$(results slurm)}}
  [ -n "${option[own-out]:-}" ] || set -- "$@" --out "$out"
  mkdir -p "$out/slurm" 2>/dev/null || stop 2 "slurm: --out: '$out/slurm' cannot be made; must be a folder that can be written"
  files=$(cd "$out/slurm" && pwd)
  words=$(slurm_words "$@")
  slurm_shards "$files" "$words" >"$files/shards.sbatch"
  slurm_merge "$files" "$words" "$out" >"$files/merge.sbatch"
  say "$out/slurm has shards.sbatch, an array of ${option[shards]} for a sweep of $cells, and merge.sbatch"
}

slurm() {
  local -A option=([cpus-per-task]=1)
  local before=() out files array merge
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    before+=("$1")
    shift
  done
  [ $# -eq 0 ] || shift
  take_options slurm "shards out ${slurm_passed//$'\n'/ }" submit "${before[@]}"
  [ -z "${option[submit]:-}" ] || command -v sbatch >/dev/null ||
    stop 2 'slurm: --submit: there is no sbatch here; must be left out, and the files be submitted where Slurm is'
  slurm_write "$@"
  if [ -z "${option[submit]:-}" ]; then
    say 'to submit them, the same with --submit, or'
    printf '  array=$(sbatch --parsable %s)\n' "$(slurm_words "$files/shards.sbatch")"
    printf '  sbatch --dependency=afterok:$array --kill-on-invalid-dep=yes %s\n' "$(slurm_words "$files/merge.sbatch")"
    return
  fi
  array=$(slurm_submit "$files/shards.sbatch") || exit
  merge=$(slurm_submit --dependency="afterok:$array" --kill-on-invalid-dep=yes "$files/merge.sbatch") || {
    scancel "$array"
    exit 2
  }
  say "submitted: array $array, then $merge, which merges once all of it is done"
  say "to look after them: squeue --jobs $array,$merge; tail $(slurm_words "$out/slurm")/*.log"
  say "to have checkpoints and queue again: scancel --batch --signal=USR1 $array; to give up: scancel $array $merge"
  say "what failed the same command makes again; results: $out"
}
