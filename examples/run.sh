#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# examples/run.sh [NAME] [--ARGUMENT...]: sets up, builds and runs an example (gpt, when none is named). With `--device cuda` among the
# arguments it is the one that nvcc compiles, where there is nvcc. What an example needs beside a compiler is in its setup.sh.
#
# --schedule NAME: one of gpt's schedules, which are compiled when they are asked for.
# --processes N: gpt in N processes, started by pipe-run; with --launcher mpirun by MPI.
# --help: this, and what the example says of itself: all of its options once it is built.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

name=gpt
if (($#)) && [[ $1 != -* ]]; then
  name=$1
  shift
fi

processes='' launcher=pipe-run
arguments=()
while (($#)); do
  case $1 in
    --processes | --launcher)
      (($# > 1)) || { echo "$1 needs a value" >&2 && exit 2; }
      declare "${1#--}=$2"
      shift
      ;;
    --processes=* | --launcher=*) declare "${1#--}" ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
set -- "${arguments[@]}"

shopt -s nullglob extglob
names=()
for path in "$root"/examples/*.cpp "$root"/examples/*.cu "$root"/examples/*/*.{cpp,cu}; do
  path=${path#"$root"/examples/}
  path=${path%%/*}
  names+=("${path%.*}")
done
known=$(printf '%s\n' "${names[@]}" | sort -u)
if ! grep -qxF -e "$name" <<<"$known"; then
  echo "no example is called '$name'; there are: $(paste -sd ' ' <<<"$known")" >&2
  exit 2
fi

if [[ " $* " =~ \ (--help|-h)\  ]]; then
  sed -n '4,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  printf 'Examples: %s\n\n' "$(paste -sd ' ' <<<"$known")"
  program=$root/build/examples/examples/$name
  [[ ! -x $program ]] || exec "$program" --help
  source=$root/examples/$name.cpp
  [[ -e $source ]] || source=$root/examples/$name/main.cpp
  sed -n '3,/^#include/{/^\/\/ \[/d;s/^\/\/ \{0,1\}//p}' "$source"
  exit
fi

if [[ $processes ]]; then
  if [[ ! $processes =~ ^[1-9][0-9]*$ ]]; then
    echo "--processes must be a number from 1, not '$processes'" >&2
    exit 2
  elif [[ $launcher != pipe-run && $launcher != mpirun ]]; then
    echo "--launcher must be pipe-run or mpirun, not '$launcher'" >&2
    exit 2
  elif ! grep -qs EXAMPLE_USES_TCP "$root/examples/$name"/*.hpp; then
    echo "the example '$name' runs in one process: --processes is for gpt" >&2
    exit 2
  fi
elif [[ $launcher != pipe-run ]]; then
  echo "--launcher starts several processes: say how many with --processes" >&2
  exit 2
fi

if [[ " $* " =~ " --device"[\ =]"cuda " && -e $root/examples/$name/cuda.cu ]] && command -v nvcc >/dev/null; then
  name=$name.cuda
fi

need g++ cmake ninja-build libcli11-dev
if grep -qsF boost/hana.hpp "$root/examples/$name.cpp"; then
  need libboost-dev
fi
[[ ! -e $root/examples/$name/setup.sh ]] || source "$root/examples/$name/setup.sh"
# CMake takes seconds to find nvcc.
case $name in
  *.cuda) configure+=(-DPIPE_CUDA=ON) ;;
  *) [[ -e $root/build/examples/CMakeCache.txt ]] || configure+=(-DPIPE_CUDA=OFF) ;;
esac
if [[ ${name%.cuda} == gpt ]]; then
  schedules=$(sed -n 's/^PIPE_GPT_SCHEDULES:STRING=//p' "$root/build/examples/CMakeCache.txt" 2>/dev/null) || true
  asked=1f1b
  for ((i = 1; i <= $#; ++i)); do
    case ${!i} in
      --schedule) next=$((i + 1)) && asked=${!next:-} ;;
      --schedule=*) asked=${!i#*=} ;;
    esac
  done
  [[ ,$schedules == *",$asked,"* ]] || schedules+=$asked,
  configure+=("-DPIPE_GPT_SCHEDULES=$schedules")
fi
echo "building examples/${name%.cuda} in build/examples" >&2
programs=$root/build/examples/examples
case $processes$launcher in
  pipe-run)
    build examples "example.$name"
    exec "$programs/$name" "$@"
    ;;
  *pipe-run)
    build examples "example.$name.tcp" pipe-run
    exec "$root/build/examples/tools/pipe-run" -n "$processes" "$programs/$name.tcp" "$@"
    ;;
esac
need openmpi-bin libopenmpi-dev
build examples "example.$name.mpi"
# The launcher of the MPI that the program was built with, the first one of cmake/mpi.cmake.
found() { sed -n "s/^$1:FILEPATH=\(\/.*\)/\1/p" "$root/build/examples/CMakeCache.txt"; }
for mpi in openmpi mpich default; do
  [[ -z $(found "PIPE_MPICXX_$mpi") || -z $(found "PIPE_MPIRUN_$mpi") ]] || break
done
# Open MPI starts more processes than there are cores where it is told to.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
exec "$(found "PIPE_MPIRUN_$mpi")" -n "$processes" "$programs/$name.mpi" "$@"
