#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# bench/run.sh [NAME...] [--ARGUMENT...]: sets up, builds and runs benchmarks (all, when none is named). A benchmark is
# bench/NAME.sh, NAME.py or NAME.cpp, the first that exists, or steps/NAME.cpp, which steps/main.py drives; a driver finds
# the built programs in $PIPE_BUILD/bench and $PIPE_BUILD/examples, and an interpreter with torch and numpy by
# `cmake/python.sh`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

wanted=()
while (($#)) && [[ $1 != -* ]]; do
  wanted+=("$1")
  shift
done

shopt -s nullglob
names=()
for path in "$root"/bench/{*.{sh,py,cpp,cu},steps/*.cpp}; do
  path=${path##*/}
  [[ $path == run.sh ]] || names+=("${path%.*}")
done
known=$(printf '%s\n' "${names[@]}" | sort -u)
for name in "${wanted[@]}"; do
  if ! grep -qxF -e "$name" <<<"$known"; then
    echo "no benchmark is called '$name'; there are: $(paste -sd ' ' <<<"$known")" >&2
    exit 2
  fi
done
if ((!${#wanted[@]})) && [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '4,7s/^# //p' "${BASH_SOURCE[0]}"
  echo "NAME: $(paste -sd ' ' <<<"$known")"
  exit
fi
((${#wanted[@]})) || mapfile -t wanted <<<"$known"

# The file that runs a benchmark.
driver_of() {
  local path
  for path in "$root/bench/$1."{sh,py,cpp,cu}; do
    [[ ! -e $path ]] || { echo "$path" && return; }
  done
  echo "$root/bench/steps/main.py"
}
# python_for FILE: an interpreter that has what the file needs, PyTorch's MKL and oneDNN too.
python_for() {
  if grep -qE '^ *(import|from) (torch|numpy)|peer/pytorch' "$1"; then "$root/cmake/python.sh"; else echo python3; fi
}

need g++ cmake ninja-build libcli11-dev libbenchmark-dev libopenblas-dev python3
(need openmpi-bin libopenmpi-dev 2>/dev/null) || true  # for processes
targets=()
for name in "${wanted[@]}"; do
  driver=$(driver_of "$name")
  case $driver in
    */steps/main.py) targets+=("bench.$name") ;;
    *.sh | *.py) ! grep -q PIPE_BUILD "$driver" || targets+=(all) ;;
    *)
      targets+=("bench.$name")
      python=$(python_for "$driver")
      [[ $python == python3 ]] ||
        configure=("-DPIPE_TORCH=$("$python" -c 'from importlib.util import find_spec as f; print(*f("torch").submodule_search_locations)')")
      ;;
  esac
done
if ((${#targets[@]})); then
  echo "building ${targets[*]} in build/bench" >&2
  build bench "${targets[@]}"
fi
export PIPE_BUILD=$root/build/bench

for name in "${wanted[@]}"; do
  echo "== $name"
  driver=$(driver_of "$name")
  case $driver in
    *.sh) bash "$driver" "$@" ;;
    */steps/main.py) "$(python_for "$driver")" "$driver" "$name" "$@" ;;
    *.py) "$(python_for "$driver")" "$driver" "$@" ;;
    *) "$PIPE_BUILD/bench/$name" "$@" ;;
  esac
done
