#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# examples/run.sh [NAME] [--ARGUMENT...]: sets up, builds and runs an example (gpt, when none is named). With `--device cuda` among the
# arguments it is the one that nvcc compiles, where there is nvcc. What an example needs beside a compiler is in its setup.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

name=gpt
if (($#)) && [[ $1 != -* ]]; then
  name=$1
  shift
fi

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

if [[ " $* " =~ " --device"[\ =]"cuda " && -e $root/examples/$name/cuda.cu ]] && command -v nvcc >/dev/null; then
  name=$name.cuda
fi

need g++ cmake ninja-build libcli11-dev
if grep -qsF boost/hana.hpp "$root/examples/$name.cpp"; then
  need libboost-dev
fi
[[ ! -e $root/examples/$name/setup.sh ]] || source "$root/examples/$name/setup.sh"
echo "building examples/${name%.cuda} in build/examples" >&2
build examples "example.$name"
exec "$root/build/examples/examples/$name" "$@"
