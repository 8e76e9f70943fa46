#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# tests/run.sh [--all] [--costs] [--target TARGET]... [CTEST ARGUMENT...]: sets up, builds everything or the targets named, and runs every test or
# those that ctest is asked for: `tests/run.sh -L schedule`, `tests/run.sh --target tests.schedule -R '^schedule$'`. With --all also the tests that
# repeat others under one more compiler or sanitizer, and what takes long (PIPE_ALL_TESTS in tests/CMakeLists.txt). With --costs everything is
# compiled anew; what each source and test took is printed and written into tests/costs.txt, by which CMake knows what takes long.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

targets=() all=OFF costs=
while true; do
  case ${1:-} in
    --all) all=ON; shift ;;
    --costs) costs=yes; shift ;;
    --target) targets+=("${2:?--target takes a target}"); shift 2 ;;
    -h | --help) sed -n '4,8s/^# //p' "${BASH_SOURCE[0]}"; exit ;;
    *) break ;;
  esac
done
[[ $costs ]] && joins=OFF || joins=ON  # a source has a time of its own only where it is compiled by itself
configure=(-DPIPE_ALL_TESTS=$all -DPIPE_JOIN_TESTS=$joins)

need g++ cmake ninja-build libboost-dev catch2 libcli11-dev python3

# optional TOOL FIRST LAST CHECKS NEEDED: names the checks that are left out where no TOOL or TOOL-N of these versions is installed.
optional() {
  local program version
  for program in $(compgen -c "$1" | grep -xE "${1//+/[+]}(-[0-9]+)?" | sort -u); do
    version=$("$program" --version 2>/dev/null | grep -oE '(version|release|Chromium) [0-9]+' | head -n 1 | cut -d' ' -f2)
    ((${version:-0} >= $2 && ${version:-0} <= $3)) && return
  done
  echo "left out: $4: they need $5"
}
optional clang++ 14 99 "headers, diagnostics and sources under clang++, fuzzing" "clang++ 14 or newer (Debian's clang)"
optional clang-format 19 99 "checks of the format" "clang-format 19 or newer (Debian's clang-format-19)"
[[ $all == OFF ]] || optional clang-tidy 19 19 "checks by clang-tidy" "clang-tidy 19 (Debian's clang-tidy-19)"
optional chromium 0 999 "reports in a browser" "Debian's chromium"
optional conan 2 99 "the Conan recipe" "Conan 2 (pip install conan)"
optional nvcc 12 99 "CUDA kernels and headers under nvcc" "CUDA Toolkit 12.4 or newer"

(need openmpi-bin libopenmpi-dev 2>/dev/null) ||
  echo "left out: pipelines over processes: they need an MPI (Debian's openmpi-bin and libopenmpi-dev, or mpich and libmpich-dev)"
(need libpng-dev libturbojpeg0-dev 2>/dev/null) ||
  echo "left out: pictures: they need libpng and TurboJPEG (Debian's libpng-dev and libturbojpeg0-dev)"
(need libfreetype-dev 2>/dev/null) || echo "left out: the example images: it needs FreeType (Debian's libfreetype-dev)"
"$root/cmake/python.sh" numpy safetensors >/dev/null 2>&1 || echo "left out: files of the safetensors package: it cannot be installed"

[[ $all == ON ]] ||
  echo "left out: what repeats tests under another sanitizer or clang++, builds for a GPU, and what takes long: tests/run.sh --all"
[[ ! $costs ]] || { export CCACHE_RECACHE=yes && rm -rf "$root/build/tests"; }
echo "building the tests in build/tests"
build tests "${targets[@]}"
! grep -q '^PIPE_HAS_CUDNN:INTERNAL=FALSE' "$root/build/tests/CMakeCache.txt" ||
  echo "left out: attention by cuDNN: it needs its headers 9.21 or newer (PyPI's nvidia-cudnn-cu13; cmake -DPIPE_CUDNN_HEADERS=FOLDER)"
! grep -q '^PIPE_HAS_NCCL:INTERNAL=FALSE' "$root/build/tests/CMakeCache.txt" ||
  echo "left out: a program with NCCL itself: it needs nvcc and NCCL (Debian's libnccl-dev, or PyPI's nvidia-nccl-cu13)"
code=0
# Tests that start processes mostly wait, so three times as many run as there are cores.
ctest --test-dir "$root/build/tests" --output-on-failure --no-label-summary --output-junit results.xml --parallel $((3 * jobs)) "$@" || code=$?
[[ ! $costs ]] || python3 "$root/tests/structure/costs.py" "$root" --of "$root/build/tests" --record
exit $code
