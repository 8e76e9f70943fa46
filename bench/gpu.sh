#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# bench/gpu.sh [OPTION...] [PROGRAM...]: builds, tests and measures the CUDA backend on a machine with a GPU, in less than nine minutes on
# 16 cores, and writes a report. Parts run in order of what they tell per second, and the report is complete after each: a part that fails,
# hangs or cannot run is a row of its own with the figures that it printed, and stops no other. Needs nvcc and Catch2, 3 or 2;
# compares with cuBLASLt and PyTorch where they are.
#
#   PROGRAM...         only these (device atoms gpt2 gpt2_4x32 gpt2_fp32 gpt2_own gpt2_wgmma gpt2_cudnn gpt2_timed products attention rows
#                      narrow_mlp optimizers bodies laws options hopper small peer)
#   --out FILE         the report: gpu-report.md
#   --headers FOLDER   the headers of Catch2 2, where no Catch2 is installed
#   --build-only       builds for sm_90a and runs nothing: build/gpu/programs can be taken to another machine
#   --prebuilt FOLDER  runs such programs, and builds only those that cannot start here
#
# $PIPE_GPU_SECONDS (540) limits the run, $PIPE_GPU_PART_SECONDS each part, $PIPE_JOBS (all cores) the compilers at a time; $CUDA_HOME
# (/usr/local/cuda) is the toolkit.
# exit code: 0; 1 if a law is broken, or a program is missing; 2 for wrong arguments
set -uo pipefail
begin=$SECONDS
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
toolkit=${CUDA_HOME:-/usr/local/cuda}
PATH=$PATH:$toolkit/bin
total=${PIPE_GPU_SECONDS:-540} longest_part=${PIPE_GPU_PART_SECONDS:-$total}

# What each program is made of. Kernel bodies are tested on the device from the sources that test them on the CPU.
declare -A sources=(
  [device]=bench/gpu/device.cu
  [atoms]="bench/gpu/main.cpp tests/cuda/atoms.cu"
  [gpt2]=bench/gpu/gpt2.cu
  [gpt2_4x32]=bench/gpu/gpt2_4x32.cu
  [gpt2_fp32]=bench/gpu/gpt2_fp32.cu
  [gpt2_own]=bench/gpu/gpt2_own.cu
  [gpt2_wgmma]=bench/gpu/gpt2_wgmma.cu
  [gpt2_cudnn]=bench/gpu/gpt2_cudnn.cu
  [gpt2_timed]=bench/gpu/gpt2_timed.cu
  [products]=bench/gpu/products.cu
  [attention]=bench/gpu/attention.cu
  [rows]=bench/gpu/rows.cu
  [narrow_mlp]=bench/gpu/narrow_mlp.cu
  [optimizers]=bench/gpu/optimizers.cu
  [bodies]="bench/gpu/main.cpp bench/gpu/managed_memory.cpp tests/cuda/row_bodies.cpp tests/cuda/contraction.cpp tests/cuda/attention.cpp tests/cuda/lengths.cpp
            tests/cuda/attention_types.cpp tests/cuda/lookup.cpp tests/cuda/update.cpp"
  [laws]="bench/gpu/main.cpp tests/cuda/on_device.cu tests/cuda/models_on_device.cu
          tests/cuda/losses_on_device.cu tests/cuda/gpt_on_device.cu tests/cuda/products_on_device.cu tests/cuda/graphs.cu
          tests/cuda/own_layers.cu tests/cuda/precision_on_device.cu tests/cuda/accumulations_on_device.cu tests/cuda/narrow_losses_on_device.cu"
  [options]="bench/gpu/main.cpp tests/cuda/optimizers_on_device.cu tests/cuda/data_on_device.cu tests/cuda/sorts_on_device.cu
             tests/cuda/attentions_on_device.cu tests/cuda/sampling_on_device.cu tests/cuda/device_text.cu"
  [hopper]="bench/gpu/main.cpp tests/cuda/hopper.cu tests/cuda/wgmma_on_device.cu"
  [small]=bench/gpu/small.cu)
# Compiled first, as they take longest.
slow=(tests/cuda/on_device.cu tests/cuda/gpt_on_device.cu tests/cuda/models_on_device.cu tests/cuda/products_on_device.cu tests/cuda/attention.cpp
  tests/cuda/row_bodies.cpp tests/cuda/losses_on_device.cu tests/cuda/precision_on_device.cu tests/cuda/graphs.cu)

headers=() out=$root/gpu-report.md build_only='' prebuilt='' asked=()
while (($#)); do
  case $1 in
    --headers | --out | --prebuilt)
      (($# > 1)) || { echo "bench/gpu.sh: $1 needs a name" >&2; exit 2; }
      case $1 in
        --headers) headers=(-I"$2") ;;
        --out) out=$2 ;;
        --prebuilt) prebuilt=$2 ;;
      esac
      shift 2 ;;
    --build-only) build_only=yes; shift ;;
    *)
      [[ $1 == peer || ${sources[$1]:-} ]] || { echo "bench/gpu.sh does not know $1" >&2; exit 2; }
      asked+=("$1"); shift ;;
  esac
done
((${#asked[@]})) || asked=("${!sources[@]}" peer)
is_asked() { [[ " ${asked[*]} " == *" $1 "* ]]; }

work=$root/build/gpu programs=$work/programs
mkdir -p "$root/build"
if [[ $prebuilt ]]; then  # which may be what an earlier run left in build/gpu, or a copy of it
  [[ -d $prebuilt ]] || { echo "bench/gpu.sh: there is no folder $prebuilt" >&2; exit 2; }
  if [[ ! $prebuilt -ef $work.prebuilt ]]; then
    rm -rf "$work.prebuilt"
    cp -r "$prebuilt" "$work.prebuilt" || exit 2
  fi
  prebuilt=$work.prebuilt
fi
rm -rf "$work"
mkdir -p "$programs" "$work/logs"

# The report: a head, rows of a table, and what failing parts printed.
declare -A expected=() value_of=()
while read -r name value _; do
  [[ $name && $name != \#* ]] && expected[$name]=$value
done < <(cat "$root/bench/gpu/expected.txt" 2>/dev/null)
write_report() {
  [[ $build_only ]] && return
  {
    cat "$work/head"
    printf '\n| what | outcome | expected | outcome / expected |\n|---|---|---|---|\n'
    cat "$work/rows" "$work/notes"
  } >"$out.part" && mv "$out.part" "$out"
}
row() { printf '| %s | %s |  |  |\n' "$1" "${2//|/\\|}" >>"$work/rows"; }
# figure NAME VALUE: a row with what was predicted; a quotient more than a quarter away from 1 stands out.
figure() {
  local wanted=${expected[$1]:-} quotient=''
  value_of[$1]=$2
  [[ $wanted ]] && quotient=$(awk -v a="$2" -v b="$wanted" 'BEGIN {
    if (b == 0) exit
    q = a / b
    printf(q > 0.75 && q < 1.25 ? "%.2f" : "**%.2f**", q)
  }')
  printf '| %s | %s | %s | %s |\n' "$1" "$2" "$wanted" "$quotient" >>"$work/rows"
}
# note TITLE: standard input, in the report below the table.
note() { { printf '\n## %s\n\n```text\n' "$1"; cat; printf '```\n'; } >>"$work/notes"; }
touch "$work/rows" "$work/notes"

# Facts of the machine.
facts() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -n 1; }
capability=9.0
[[ $build_only ]] || capability=$(facts compute_cap)
arch=(-arch=native) arch_name=native-$capability
[[ $capability == 9.0 ]] && arch=(-gencode "arch=compute_90a,code=sm_90a") arch_name=sm_90a
commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
{
  echo "# bench/gpu.sh"
  echo
  echo "$(date -u +%F), commit $commit${prebuilt:+, programs of commit $(cat "$prebuilt/commit" 2>/dev/null)}," \
    "$(nvcc --version 2>/dev/null | grep -o 'release [0-9.]*' || echo "no nvcc")"
} >"$work/head"
[[ $build_only ]] || row "GPU, driver, memory, power limit, highest clocks of multiprocessors and memory" \
  "$(facts name,driver_version,memory.total,power.limit,clocks.max.sm,clocks.max.mem || true)"

# cuBLASLt and its header are the toolkit's, or Python's packages'; so is cuDNN.
of_packages() {
  python3 -c 'import glob, importlib.util, sys
spec = importlib.util.find_spec("nvidia")
for folder in (spec.submodule_search_locations or []) if spec else []:
    print(*sorted(glob.glob(folder + "/*/" + sys.argv[1]), reverse=True), sep="\n")' "$1" 2>/dev/null
}
first_file() {
  local path
  while read -r path; do [[ -f $path ]] && { echo "$path"; return; }; done
}
cudnn=$(of_packages 'lib/libcudnn.so.9' | first_file)
[[ $cudnn ]] && export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${cudnn%/*}
cublaslt=$({ compgen -G "$toolkit/lib64/libcublasLt.so.*"; of_packages 'lib/libcublasLt.so.*'; } | first_file)
[[ $cublaslt ]] && export LD_LIBRARY_PATH=${cublaslt%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[[ $build_only ]] || row "cuBLASLt" "${cublaslt:-in no folder that is searched here}"
if ! echo '#include <cublasLt.h>' | nvcc -x cu -E - >/dev/null 2>&1; then
  header=$(of_packages 'include/cublasLt.h' | first_file)
  if [[ $header ]]; then  # nothing else of that folder, whose CUDA may be another one than nvcc's
    mkdir -p "$work/include"
    ln -sf "${header%/*}"/cublas*.h "$work/include"
    headers+=(-I"$work/include")
  fi
fi

# The peer is compiled beside everything that is not measured; its caches stay for the next run.
peer=(env TORCHINDUCTOR_CACHE_DIR="$root/build/torch" TRITON_CACHE_DIR="$root/build/torch/triton" PYTHONUNBUFFERED=1
  python3 "$root/bench/gpu/torch_peer.py")
compiling='' peer_seconds=0  # its process group, and what is kept for its measurement
signal_peer() { [[ $compiling ]] && kill "$1" -- "-$compiling" 2>/dev/null; }
end_peer() { signal_peer -KILL && wait "$compiling" 2>/dev/null; compiling=''; }
trap end_peer EXIT
trap 'exit 143' TERM INT
if is_asked peer && [[ ! $build_only ]]; then
  nice setsid "${peer[@]}" --compile-only >"$work/peer.log" 2>&1 &
  compiling=$! peer_seconds=$((total / 6))
  until kill -0 -- "-$compiling" 2>/dev/null || ! kill -0 "$compiling" 2>/dev/null; do sleep 0.05; done
fi
# Without PyTorch there is nothing to keep time for.
look_after_peer() {
  [[ $compiling ]] && ! kill -0 "$compiling" 2>/dev/null || return
  wait "$compiling"
  (($? == 77)) && peer_seconds=0
  compiling=''
}

# Programs.
object() { echo "$work/${1//\//.}.o"; }
compile() {  # compile SOURCE
  local options=(-O2)
  [[ $1 == tests/cuda/* ]] && options=(-x cu -O1)  # of the host's code
  [[ $1 == */main.cpp ]] && options=(-O0)
  # Optimizers are compared to the bit with formulas that nobody fuses.
  [[ $1 == */update.cpp ]] && options+=(-fmad=false)
  nvcc -std=c++20 "${arch[@]}" "${options[@]}" -I"$root/include" -I"$root/tests" "${headers[@]}" -c "$root/$1" \
    -o "$(object "$1")" >"$(object "$1").log" 2>&1 || {
    echo "cannot compile $1:"
    grep -m 5 -E "error|fatal" "$(object "$1").log"
  }
}
catch=()
! echo '#include <catch2/catch_test_macros.hpp>' | nvcc -std=c++20 -x cu -E - >/dev/null 2>&1 || catch=(-lCatch2)
link() {  # link PROGRAM: stripped, and with its own C++ library
  local objects=() source
  for source in ${sources[$1]}; do objects+=("$(object "$source")"); done
  nvcc "${arch[@]}" -Xcompiler -static-libstdc++,-static-libgcc -Xlinker -s -o "$programs/$1" "${objects[@]}" "${catch[@]}" -lpthread -ldl \
    >"$work/$1.log" 2>&1 || echo "cannot link $1"
}
starts() {  # starts PROGRAM: whether a prebuilt one is for this GPU, as far as that is known, and for this system
  [[ -x $prebuilt/$1 && ($(cat "$prebuilt/arch" 2>/dev/null) == "$arch_name" || ! $capability) ]] && ! ldd "$prebuilt/$1" 2>&1 | grep -q 'not found'
}
missing=() failed=()
for name in "${asked[@]}"; do
  [[ $name == peer ]] && continue
  if [[ $prebuilt ]] && starts "$name"; then
    cp "$prebuilt/$name" "$programs"
  else
    missing+=("$name")
  fi
done
if ((${#missing[@]})); then
  write_report
  # shellcheck disable=SC2086  # a list of names without spaces
  needed=$(for name in "${missing[@]}"; do printf '%s\n' ${sources[$name]}; done | sort -u)
  (  # a shell that has no other children
    for source in $(printf '%s\n' "${slow[@]}" | grep -xF "$needed") $(grep -vxF "$(printf '%s\n' "${slow[@]}")" <<<"$needed"); do
      while (($(jobs -rp | wc -l) >= ${PIPE_JOBS:-$(nproc)})); do wait -n; done
      compile "$source" &
    done
    wait
    for name in "${missing[@]}"; do link "$name" & done
    wait
  )
  for name in "${missing[@]}"; do
    [[ -x $programs/$name ]] && continue
    failed+=("build of $name")
    row "build of $name" "**failed**"
    for source in ${sources[$name]}; do
      [[ -e $(object "$source") ]] || tail -n 20 "$(object "$source").log" | note "Compilation of $source"
    done
  done
  row "build of ${missing[*]}" "$((SECONDS - begin)) s"
fi
echo "$arch_name" >"$programs/arch"
echo "$commit" >"$programs/commit"
if [[ $build_only ]]; then
  ((${#failed[@]} == 0)) && echo "built in build/gpu/programs, $(du -sh "$programs" | cut -f1): ${missing[*]}"
  exit $((${#failed[@]} > 0))
fi

# attempt WHAT LIMIT COMMAND...: runs a command for LIMIT seconds at most, and reports how it ended, its figures, and the end of its output
# if it failed. Status 77, or output that matches $cannot_run, says that it cannot run here. Fails if the command did.
cannot_run=''
attempt() {
  look_after_peer
  local name=$1 limit=$2 left=$((begin + total - peer_seconds - SECONDS)) status sampler='' during='' start=$SECONDS
  local output=$work/output reason what value is_cut=''
  : >"$output"
  shift 2
  ((limit > longest_part)) && limit=$longest_part
  ((left < limit)) && limit=$left is_cut=yes
  if [[ $1 == "$programs"/* && ! -x $1 ]]; then
    [[ " ${missing[*]} " == *" ${1##*/} "* ]] && row "$name" "left out: not built"
    return 0
  elif ((limit < 1)); then
    row "$name" "left out: no time is left"
    write_report
    return 0
  fi
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=clocks.sm,power.draw --format=csv,noheader,nounits -lms 500 >"$work/samples" 2>/dev/null &
    sampler=$!
  fi
  timeout --kill-after=3 "$limit" "$@" >"$output" 2>&1 </dev/null
  status=$?
  if [[ $sampler ]]; then
    { kill -KILL "$sampler"; wait "$sampler"; } 2>/dev/null  # no trap of ours can run in its place
    during=$(awk -F, '$1 + 0 > clock { clock = $1 + 0 } $2 + 0 > power { power = $2 + 0 }
                      END { if (clock) printf ", up to %d MHz, %d W", clock, power }' "$work/samples")
  fi
  cp "$output" "$work/logs/$(tr -c '[:alnum:]\n' _ <<<"$name").log"
  if ((status == 0)); then
    row "$name" "ok, $((SECONDS - start)) s$during$(sed -n 's/^All tests passed (\(.*\))$/, \1/p' "$output")"
  elif ((status == 77)); then
    row "$name" "left out: $(tail -n 1 "$output")"
    status=0
  elif [[ $cannot_run ]] && reason=$(grep -m 1 -E "$cannot_run" "$output"); then
    row "$name" "left out: $reason"
    status=0
  elif ((status == 124 || status == 137)) && [[ $is_cut ]]; then
    row "$name" "left out: no time was left after $limit s"
    status=0
  else
    if ((status == 124 || status == 137)); then
      row "$name" "**stopped** after $limit s"
    else
      row "$name" "**failed** ($status): $(grep -v '^[ =]*$' "$output" | tail -n 1 | cut -c1-160)"
    fi
    { grep -m 1 -B 4 -A 55 'FAILED:' "$output" || tail -n 60 "$output"; } | note "$name"
  fi
  while read -r _ what value _; do figure "$what" "$value"; done < <(grep '^figure ' "$output")
  write_report
  return $status
}
law() { attempt "$@" || failed+=("$1"); }
program() { attempt "$1" "$2" "$programs/$3" "${@:4}"; }  # program WHAT LIMIT PROGRAM ARGUMENT...
# over NAME A B: the quotient of two figures, if there are both.
over() {
  local a=${value_of[$2]:-} b=${value_of[$3]:-}
  [[ $a && $b ]] && figure "$1" "$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.3f", b ? a / b : 0 }')"
}
write_report

signal_peer -STOP
program "the device: a copy, a product by cuBLASLt" 30 device
is_asked atoms && law "laws: instructions, lane by lane" 30 "$programs/atoms"
program "GPT-2 124M, bf16, 2 x 8 samples" 60 gpt2
program "GPT-2 124M, bf16, 4 x 32 samples" 60 gpt2_4x32
for batch in "" _4x32; do over "gpt2_of_cublaslt_bf16$batch" "gpt2_tflops_bf16$batch" cublaslt_tflops_bf16; done
for variant in own wgmma cudnn timed; do
  program "GPT-2 124M, bf16, $variant, 2 x 8 samples" 45 "gpt2_$variant"
  over "gpt2_${variant}_over_default" "gpt2_tokens_per_second_bf16_$variant" gpt2_tokens_per_second_bf16
done
program "kernels of GPT-2 124M, bf16" 60 gpt2 --kernels
kernels=$(grep ' launches ' "$work/output" | head -n 40) && note "Kernels of GPT-2 124M, bf16, 2 x 8 samples" <<<"$kernels"
program "products over cuBLASLt" 45 products
program "attention" 45 attention
program "rows and updates over a copy" 45 rows
program "a narrow MLP over cuBLASLt" 45 narrow_mlp
program "updates of other optimizers over AdamW's" 30 optimizers
program "GPT-2 124M, fp32, 2 x 8 samples" 60 gpt2_fp32
signal_peer -CONT

is_asked bodies && law "laws: every kernel family against fp64" 120 "$programs/bodies"
is_asked laws && law "laws: the bits of one stage under every schedule, the host's losses, a rejected step" 150 "$programs/laws"
is_asked options && law "laws: optimizers of whole tensors, data and text on the device, CUB's sort, cuDNN's attention" 60 "$programs/options"
is_asked hopper && law "laws: bulk copies, barriers and products of Hopper" 30 "$programs/hopper"
if command -v compute-sanitizer >/dev/null; then
  cannot_run='Device not supported|[Dd]river .*not supported|(Failed|Unable) to initialize|Internal Sanitizer Error'
  for tool in memcheck racecheck synccheck; do
    sanitizer=(compute-sanitizer --tool "$tool" --error-exitcode 3)
    [[ -x $programs/small ]] && law "$tool of two small models" 60 "${sanitizer[@]}" "$programs/small"
    [[ -x $programs/bodies ]] && law "$tool of small kernels" 45 "${sanitizer[@]}" "$programs/bodies" "[small]"
  done
else
  is_asked small && row "compute-sanitizer" "left out: not found"
fi
if command -v ncu >/dev/null && [[ -x $programs/gpt2 ]]; then
  signal_peer -STOP
  cannot_run='==ERROR==|Failed to|not supported'
  attempt "profile of kernels: ${out%.md}.ncu-rep" 60 ncu --set full --clock-control none --filter-mode per-launch-config --launch-count 1 \
    --kernel-name-base demangled --kernel-name 'regex:contraction|attention|cross_entropy|norm|narrow' --force-overwrite \
    --export "${out%.md}.ncu-rep" "$programs/gpt2" 1
  signal_peer -CONT
fi
cannot_run=''

if is_asked peer; then
  while kill -0 "${compiling:-none}" 2>/dev/null && ((SECONDS < begin + total - peer_seconds)); do sleep 0.2; done
  end_peer
  peer_seconds=0
  attempt "the peer: torch.compile" 300 "${peer[@]}"
  # best NAME FIRST: of all ways that the peer was compiled, the first in this order of sort
  best() {
    local figure found=()
    for figure in "${!value_of[@]}"; do [[ $figure == "$1"_by_* ]] && found+=("${value_of[$figure]}"); done
    ((${#found[@]})) && figure "$1" "$(printf '%s\n' "${found[@]}" | sort "$2" | head -n 1)"
  }
  for format in bf16 bf16_4x32 fp32 tf32; do
    best "torch_gpt2_tokens_per_second_$format" -gr
    best "torch_narrow_mlp_us_$format" -g
    over "gpt2_over_torch_compile_$format" "gpt2_tokens_per_second_$format" "torch_gpt2_tokens_per_second_$format"
    over "narrow_mlp_over_torch_compile_$format" "torch_narrow_mlp_us_$format" "narrow_mlp_us_$format"
  done
fi
row "all of it" "$((SECONDS - begin)) s"
write_report
cat "$out"
((${#failed[@]} == 0)) || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
