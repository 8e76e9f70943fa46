#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# bench/gpu.sh [--headers FOLDER] [--out FILE] [--build-only]: on a machine with a GPU, builds, tests and measures the CUDA backend, and
# writes what came out as a table. It needs nvcc and the headers of Catch2 2: the system's, or those in FOLDER; with
# cuBLASLt and PyTorch it compares. It goes on after a failure, and ends with 1 if a law was broken. --build-only compiles for sm_90a and
# runs nothing. With 16 cores it takes less than nine minutes.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PATH=$PATH:/usr/local/cuda/bin
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:/usr/local/cuda/lib64  # of cuBLASLt
headers=() out=$root/gpu-report.md build_only=
while (($#)); do
  case $1 in
    --headers) headers=(-I"$2"); shift 2 ;;
    --out) out=$2; shift 2 ;;
    --build-only) build_only=yes; shift ;;
    *) echo "bench/gpu.sh does not know $1" >&2; exit 2 ;;
  esac
done

folder=$root/build/gpu arch=(-arch=native)
[[ $build_only ]] && arch=(-gencode arch=compute_90a,code=sm_90a)
rm -rf "$folder"
mkdir -p "$folder"

# What each program is made of. Kernel bodies are tested on the device from the sources that test them on the CPU.
declare -A sources=(
  [laws]="tests/main.cpp tests/cuda/on_device.cu tests/cuda/models_on_device.cu tests/cuda/products_on_device.cu
          tests/cuda/own_layers.cu tests/cuda/precision_on_device.cu"
  [bodies]="tests/main.cpp bench/gpu/managed_memory.cpp tests/cuda/row_bodies.cpp tests/cuda/contraction.cpp tests/cuda/attention.cpp
            tests/cuda/attention_types.cpp tests/cuda/lookup.cpp tests/cuda/update.cpp"
  [small]=bench/gpu/small.cu [gpt2]=bench/gpu/gpt2.cu [rows]=bench/gpu/rows.cu [products]=bench/gpu/products.cu
  [attention]=bench/gpu/attention.cu [narrow_mlp]=bench/gpu/narrow_mlp.cu)
[[ $build_only ]] && unset 'sources[laws]'  # tests/run.sh builds these for two architectures
declare -A libraries=([products]=-lcublasLt [narrow_mlp]=-lcublasLt)

object() { echo "$folder/${1//\//.}.o"; }
compile() {  # compile SOURCE
  local options=()
  [[ $1 == tests/cuda/* ]] && options=(-x cu)
  # Optimizers are compared to the bit with formulas that nobody fuses.
  [[ $1 == */update.cpp ]] && options+=(-fmad=false)
  nvcc -std=c++20 -O2 "${arch[@]}" "${options[@]}" -I"$root/include" -I"$root/tests" "${headers[@]}" -c "$root/$1" \
    -o "$(object "$1")" >"$(object "$1").log" 2>&1 || {
    echo "cannot compile $1:"
    grep -m 5 -E "error|fatal" "$(object "$1").log"
  }
}
link() {  # link PROGRAM
  local objects=() source
  for source in ${sources[$1]}; do objects+=("$(object "$source")"); done
  nvcc "${arch[@]}" -o "$folder/$1" "${objects[@]}" ${libraries[$1]:-} -lpthread >"$folder/$1.log" 2>&1 || {
    echo "cannot link $1"
    return 1
  }
}
failed=()
begin=$SECONDS
for source in $(printf '%s\n' ${sources[@]} | sort -u); do
  while (($(jobs -rp | wc -l) >= ${PIPE_JOBS:-$(nproc)})); do wait -n; done
  compile "$source" &
done
wait
for name in "${!sources[@]}"; do link "$name" || failed+=("build of $name"); done
if [[ $build_only ]]; then
  ((${#failed[@]} == 0)) && echo "everything is built in build/gpu"
  exit $((${#failed[@]} > 0))
fi

declare -A value_of=()
total=500  # seconds, of the nine minutes that a machine is ours
over() {  # over NAME A B: the quotient of two figures, if there are both
  local a=${value_of[$2]:-} b=${value_of[$3]:-}
  [[ $a && $b ]] && row "$1" "$(awk "BEGIN { printf \"%.3f\", $a / $b }")"
}
row() { printf '| %s | %s |\n' "$1" "$2" >>"$out"; }
{
  echo "# bench/gpu.sh"
  echo
  echo "$(date -u +%F), commit $(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1), $(nvcc --version | grep -o 'release [0-9.]*')"
  echo
  echo "| what | outcome |"
  echo "|---|---|"
} >"$out"
row "build" "$((SECONDS - begin)) s"
for name in "${failed[@]}"; do row "$name" "**failed**"; done

# attempt WHAT LIMIT COMMAND...: runs it for LIMIT seconds, or until all time is over, and notes how it ended, and its figures.
attempt() {
  local name=$1 limit=$2 left=$((begin + total - SECONDS)) status figure value
  shift 2
  timeout $((left < 1 ? 1 : left < limit ? left : limit)) "$@" >"$folder/output" 2>&1
  status=$?
  if ((status == 0)); then
    row "$name" ok
  elif ((status == 77)); then
    row "$name" "left out: $(tail -n 1 "$folder/output")"
    status=0
  else
    row "$name" "**failed** ($status): $(grep -v '^ *$' "$folder/output" | tail -n 1 | cut -c1-160)"
    echo "--- $name"
    tail -n 40 "$folder/output"
  fi
  while read -r _ figure value; do
    row "$figure" "$value"
    value_of[$figure]=$value
  done < <(grep '^figure ' "$folder/output")
  return $status
}
law() { attempt "$@" || failed+=("$1"); }

law "laws: every kernel family against fp64" 120 "$folder/bodies"
law "laws: the bits of one stage under every schedule, the host's losses, a rejected step" 150 "$folder/laws"
attempt "GPT-2 124M trains" 60 "$folder/gpt2"
grep ' launches ' "$folder/output" | head -n 30 >"$folder/kernels"
attempt "rows and updates over a copy" 30 "$folder/rows"
attempt "products over cuBLASLt" 30 "$folder/products"
attempt "attention" 30 "$folder/attention"
attempt "a narrow MLP over cuBLASLt" 30 "$folder/narrow_mlp"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    law "compute-sanitizer $tool" 60 compute-sanitizer --tool "$tool" --error-exitcode 3 "$folder/small"
  done
else
  row "compute-sanitizer" "not found"
fi
attempt "the peer: torch.compile" 180 python3 "$root/bench/gpu/torch_peer.py"
for precision in fp32 bf16; do  # ours over theirs; of microseconds the other way round
  over "gpt2_over_torch_compile_$precision" "gpt2_tokens_per_second_$precision" "torch_gpt2_tokens_per_second_$precision"
  over "narrow_mlp_over_torch_compile_$precision" "torch_narrow_mlp_us_$precision" "narrow_mlp_us_$precision"
done
if [[ -s $folder/kernels ]]; then
  { echo; echo "The kernels of GPT-2:"; echo; echo '```text'; cat "$folder/kernels"; echo '```'; } >>"$out"
fi
cat "$out"
((${#failed[@]} == 0)) || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
