# shellcheck shell=bash disable=SC2034,SC2154  # variables of lab
# `./lab gpu`: sourced by lab. Where the packages are it makes a folder of programs; where a GPU is it runs that folder, with
# nothing but a driver. The folder lies in the build tree that git ignores already, and is copied as one.
gpu_build=$root/build-gpu
gpu_programs=$gpu_build/programs
gpu_packages=(g++ cmake ninja-build libcli11-dev nlohmann-json3-dev libfmt-dev libtomlplusplus-dev zlib1g-dev
  doctest-dev)
gpu_most_mib=40

# NAME LIMIT_S BUDGET_S ARGUMENTS: what a default run runs, and the budget that a program is given (0 for none) to end by
# itself, with its results. Ended by force everywhere, with the tables and the question for cuBLAS below, it takes less than
# 8 minutes.
gpu_runs=(
  'gpu_tests 50 0 --no-colors=true --no-path-filenames=true'
  'validate_gpu 185 140 --device cuda'
  'gpu_throughput 70 55'
  'explain_gemm 90 70 --cublas'
)
gpu_kill_after=5
gpu_tables_limit=40
gpu_cublas_limit=10

gpu_find_nvcc() {
  local place
  for place in "${CUDACXX:-}" "${CUDA_PATH:-/none}/bin/nvcc" "${CUDA_HOME:-/none}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
    [ ! -x "$place" ] || return 0
  done
  command -v nvcc >/dev/null
}

gpu_require_nvcc() {
  gpu_find_nvcc || stop 2 "gpu: nvcc was not found; the programs are built where CUDA's compiler, 12 or newer, is"
}

gpu_make_programs() {
  local build=$gpu_build preset=gpu size
  configure
  compile --target gpu_programs
  size=$(du -sm "$gpu_programs" | cut -f 1)
  [ "$size" -le "$gpu_most_mib" ] || stop 1 "gpu: $gpu_programs takes $size MiB, at most $gpu_most_mib are allowed"
  say "the programs, $size MiB: $gpu_programs"
}

# Nothing is installed where a GPU is.
gpu_require_programs() {
  [ ! -x "$gpu_programs/gpu_status" ] || return 0
  # Compiling takes minutes.
  [ -e /dev/nvidiactl ] || [ -e /proc/driver/nvidia/version ] || [ -e /dev/dxg ] ||
    stop 2 "gpu: no CUDA device: no NVIDIA driver is installed"
  if gpu_find_nvcc && { [ "${HALFLAB_SKIP_SETUP:-0}" = 1 ] || [ -z "$(missing_packages "${gpu_packages[@]}")" ]; }; then
    gpu_make_programs
  else
    stop 2 "gpu: no programs in $gpu_programs, and no nvcc and packages to build them; make them elsewhere by ./lab gpu --build and copy that folder"
  fi
}

# Lets the programs find a cuBLAS that the dynamic loader does not know of: CUDA's, or that of a Python package.
gpu_find_cublas() {
  local place places=("${CUDA_PATH:-/none}/lib64" "${CUDA_HOME:-/none}/lib64" /usr/local/cuda/lib64)
  mapfile -t -O ${#places[@]} places < <(python3 -c 'import glob, sys
for path in sys.path: print(*glob.glob(path + "/nvidia/*/lib"), sep="\n")' 2>/dev/null || true)
  for place in "${places[@]}"; do
    if compgen -G "$place/libcublas.so*" >/dev/null; then
      export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(realpath "$place")
      return
    fi
  done
}

# Whether there is a cuBLAS, which is no part of a driver; why not is left as the log of the program that needs it.
gpu_has_cublas() {  # NAME
  local said code=0
  said=$(cd "$gpu_work" &&
    timeout --foreground --kill-after=$gpu_kill_after $gpu_cublas_limit "$gpu_programs/gpu_status" --cublas 2>&1 </dev/null) ||
    code=$?
  [ $code -eq 1 ] || return 0
  said=${said##*$'\n'}
  [[ $said != *'no library'* ]] ||
    said+=" (looked for by the dynamic loader, in CUDA_PATH, CUDA_HOME, /usr/local/cuda and among Python's packages)"
  printf '%s\n' "$said" >"$gpu_work/$1.log"
  return 1
}

# Runs in $gpu_work, so that --out is a bare name and the results have no path of this machine.
gpu_limited() {  # LIMIT_S NAME ARGUMENTS...
  (cd "$gpu_work" && exec timeout --foreground --signal=INT --kill-after=$gpu_kill_after "$1" "$gpu_programs/$2" "${@:3}" \
    >>"$2.log" 2>&1 </dev/null)
}

# Why a program did not end well: what it says of itself, or its last words.
gpu_reason() {  # NAME CODE
  local log=$gpu_work/$1.log said
  said=$(sed -n "s/^$1: //p" "$log" | tail -n 1)
  case $2 in
    124 | 137) printf 'ended by its time limit' ;;
    *) printf 'exit code %d: %s' "$2" "${said:-$(tail -n 1 "$log")}" ;;
  esac
}

# Whether validate_gpu has done something since it was to go on from the results.
gpu_has_new_shards() {
  [ -e "$gpu_work/validate_gpu/shards.bin" ] && ! cmp -s "$gpu_work/validate_gpu/shards.bin" "$gpu_out/shards.bin"
}

gpu_merge() {
  "$gpu_programs/gpu_status" --merge "$gpu_work" --out "$gpu_out" || {
    trap - EXIT
    stop 1 "gpu: what ran is kept in $gpu_work"
  }
}

# A program that cannot run here, which is no failure.
gpu_pass_over() {  # NAME
  printf 'lab: %s ... not run: %s\n' "$1" "$(cat "$gpu_work/$1.log")"
  printf '%s not_run 0\n' "$1" >>"$gpu_work/runs"
  gpu_merge
}

# Runs a program within its limit and puts what it left into the record, so that a later failure loses nothing.
gpu_run() {  # NAME LIMIT_S BUDGET_S ARGUMENTS...
  local name=$1 limit=$2 budget=$3 arguments=("${@:4}") given=() code=0 start=$SECONDS
  [ "$name" = gpu_tests ] || arguments+=(--out "$name")
  [ "$budget" -eq 0 ] || given=(--budget "$budget")
  printf 'lab: %s ... ' "$name"
  gpu_limited "$limit" "$name" "${arguments[@]}" "${given[@]}" || code=$?
  printf '%d s%s\n' $((SECONDS - start)) "$([ $code -eq 0 ] || printf ', %s' "$(gpu_reason "$name" $code)")"
  # What is refused at once leaves the results as they are that it was to go on from.
  if [ $code -eq 2 ] && [ "$fma48" = yes ] && ! gpu_has_new_shards; then exit 2; fi
  # Of one that was ended the shards are there, and without a budget it makes their tables and no others.
  if [ "$name" = validate_gpu ] && [ ! -e "$gpu_work/$name/manifest.json" ] && [ -e "$gpu_work/$name/shards.bin" ]; then
    gpu_limited $gpu_tables_limit "$name" "${arguments[@]}" --budget 0 || true
  fi
  printf '%s %d %d\n' "$name" $code $((SECONDS - start)) >>"$gpu_work/runs"
  [ $code -eq 0 ] || gpu_failed+=("$name")
  gpu_merge
}

gpu_measure() {  # FMA48 BUDGET
  local fma48=$1 budget=$2 run words
  gpu_require_programs
  gpu_work=$(mktemp -d)
  trap 'rm -rf "$gpu_work"' EXIT
  local device
  device=$("$gpu_programs/gpu_status" --device "$gpu_work/gpu.json" 2>&1) || stop 2 "gpu: ${device#gpu_status: }"
  mkdir -p "$gpu_out" 2>/dev/null || stop 2 "gpu: --out: '$gpu_out' cannot be made; must be a folder that can be written"
  say "on $device"
  gpu_find_cublas
  gpu_failed=()
  if [ "$fma48" = yes ]; then
    mkdir "$gpu_work/validate_gpu"
    [ ! -e "$gpu_out/shards.bin" ] || cp "$gpu_out/shards.bin" "$gpu_work/validate_gpu"
    gpu_run validate_gpu $((budget + 60)) "$budget" --device cuda --op hfma,hfma_sat,hfma_relu --fma48
  else
    for run in "${gpu_runs[@]}"; do
      read -ra words <<<"$run"
      if [[ $run == *' --cublas'* ]] && ! gpu_has_cublas "${words[0]}"; then
        gpu_pass_over "${words[0]}"
      else
        gpu_run "${words[@]}"
      fi
    done
  fi
  cat "$gpu_out/verdict.txt"
  say "the record: $gpu_out"
  [ ${#gpu_failed[@]} -eq 0 ] || stop 1 "gpu: not all went well: ${gpu_failed[*]}"
}

gpu_make_status() {
  set_up "${demo_packages[@]}"
  configure -DHALFLAB_TESTS=OFF -DHALFLAB_CUDA=OFF
  compile --target gpu_status
}

gpu_figures() {  # DIR
  local script scripts
  gpu_make_status
  scripts=$("$build/bin/gpu_status" --figures "$1")
  for script in $scripts; do
    (cd "$1/${script%/*}" && LC_ALL=C.UTF-8 gnuplot -d "${script#*/}")
    say "drawn: $1/${script%.gp}.svg"
  done
}

gpu() {
  local -A option=()
  take_options gpu 'out figures budget' 'build status fma48' "$@"
  local fma48=${option[fma48]:-no} budget=${option[budget]:-420}
  [[ $budget =~ ^[1-9][0-9]{0,5}$ ]] || stop 2 "gpu: --budget: '$budget' must be a number of seconds from 1 on"
  gpu_out=${option[out]:-$(results gpu)}
  if [ "$fma48" = yes ] && [ -z "${option[out]:-}" ]; then gpu_out+=_fma48; fi
  if [ -n "${option[build]:-}" ]; then
    gpu_require_nvcc
    set_up "${gpu_packages[@]}"
    gpu_make_programs
  elif [ -n "${option[status]:-}" ]; then
    gpu_make_status
    "$build/bin/gpu_status" --records "$root/experiments/records" --page "$root/docs/gpu.md"
  elif [ -n "${option[figures]:-}" ]; then
    gpu_figures "${option[figures]}"
  else
    gpu_measure "$fma48" "$budget"
  fi
}
