#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# bench/run.sh [NAME...] [--ARGUMENT...]: sets up, builds and runs benchmarks (all, when none is named). A benchmark is
# bench/NAME.sh, NAME.py or NAME.cpp, the first that exists; a driver finds the built programs in $PIPE_BUILD/bench and
# $PIPE_BUILD/examples, and an interpreter with torch and numpy by `cmake/python.sh`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

wanted=()
while (($#)) && [[ $1 != -* ]]; do
  wanted+=("$1")
  shift
done

shopt -s nullglob
names=()
for path in "$root"/bench/*.{sh,py,cpp,cu}; do
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
  sed -n '4,6s/^# //p' "${BASH_SOURCE[0]}"
  echo "NAME: $(paste -sd ' ' <<<"$known")"
  exit
fi
((${#wanted[@]})) || mapfile -t wanted <<<"$known"

need g++ cmake ninja-build libcli11-dev libbenchmark-dev libopenblas-dev python3
(need openmpi-bin libopenmpi-dev 2>/dev/null) || true  # for processes
for name in "${wanted[@]}"; do
  driver=$(compgen -G "$root/bench/$name.[ps][yh]") || driver=
  if [[ ! $driver ]] || grep -qE 'PIPE_BUILD|^from peer' "$driver"; then
    echo "building the benchmarks in build/bench" >&2
    build bench
    break
  fi
done
export PIPE_BUILD=$root/build/bench

for name in "${wanted[@]}"; do
  echo "== $name"
  driver=$root/bench/$name
  if [[ -e $driver.sh ]]; then
    bash "$driver.sh" "$@"
  elif [[ -e $driver.py ]]; then
    python=python3
    if grep -qE '^ *(import|from) (torch|numpy)' "$driver.py"; then python=$("$root/cmake/python.sh"); fi
    "$python" "$driver.py" "$@"
  else
    "$PIPE_BUILD/bench/$name" "$@"
  fi
done
