#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# bench/gpu.sh [--headers FOLDER] [--out FILE] [--build-only]: on a machine with a GPU, builds, tests and measures the CUDA backend, and
# writes what came out as a table. It needs nvcc and the headers of Boost.Hana and Catch2 2: the system's, or those in FOLDER. It goes on
# after a failure, and ends with 1 if a law was broken. --build-only compiles for sm_90a and runs nothing.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PATH=$PATH:/usr/local/cuda/bin
headers=() out=$root/gpu-report.md build_only=
while (($#)); do
  case $1 in
    --headers) headers=(-I"$2"); shift 2 ;;
    --out) out=$2; shift 2 ;;
    --build-only) build_only=yes; shift ;;
    *) echo "bench/gpu.sh does not know $1" >&2; exit 2 ;;
  esac
done

folder=$root/build/gpu arch=native
[[ $build_only ]] && arch=sm_90a
mkdir -p "$folder"
compile() {  # compile NAME SOURCE...
  nvcc -std=c++20 -O2 -arch="$arch" -I"$root/include" -I"$root/tests" "${headers[@]}" -o "$folder/$1" "${@:2}" -lpthread \
    >"$folder/$1.log" 2>&1 || { echo "cannot build $1:"; grep -m 5 -E "error|fatal" "$folder/$1.log"; return 1; }
}
failed=()
compile small "$root/bench/gpu/small.cu" & small=$!
compile gpt2 "$root/bench/gpu/gpt2.cu" & gpt2=$!
compile laws "$root/tests/cuda/on_device.cu" "$root/tests/main.cpp" & laws=$!
compile products "$root/tests/cuda/products_on_device.cu" "$root/tests/main.cpp" & products=$!
for name in small gpt2 laws products; do wait "${!name}" || failed+=("build of $name"); done
if [[ $build_only ]]; then
  ((${#failed[@]} == 0)) && echo "everything is built in build/gpu"
  exit $((${#failed[@]} > 0))
fi

row() { printf '| %s | %s |\n' "$1" "$2" >>"$out"; }
{
  echo "# bench/gpu.sh"
  echo
  echo "$(date -u +%F), commit $(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1), $(nvcc --version | grep -o 'release [0-9.]*')"
  echo
  echo "| what | outcome |"
  echo "|---|---|"
} >"$out"

check() {  # check WHAT LIMIT COMMAND...: runs it, and notes whether it succeeded
  local name=$1 limit=$2
  shift 2
  if timeout "$limit" "$@" >"$folder/output" 2>&1; then
    row "$name" ok
  else
    failed+=("$name")
    row "$name" "**failed**: $(grep -v '^ *$' "$folder/output" | tail -n 1 | cut -c1-160)"
    echo "--- $name"
    tail -n 40 "$folder/output"
  fi
}
check "laws: the bits of one stage under every schedule, the host's losses, a rejected step" 180 "$folder/laws"
check "laws of products by cuBLASLt" 180 "$folder/products"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    check "compute-sanitizer $tool" 120 compute-sanitizer --tool "$tool" --error-exitcode 3 "$folder/small"
  done
else
  row "compute-sanitizer" "not found"
fi
check "GPT-2 124M trains" 180 "$folder/gpt2"
while read -r _ name value; do row "$name" "$value"; done < <(grep '^figure ' "$folder/output")
if grep -q ' launches ' "$folder/output"; then
  { echo; echo '```text'; grep ' launches ' "$folder/output" | head -n 30; echo '```'; } >>"$out"
fi
cat "$out"
((${#failed[@]} == 0)) || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
