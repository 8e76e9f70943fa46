# SPDX-License-Identifier: BSL-1.0
#
# Sourced by the run.sh scripts: `need PACKAGE...` sees to it that the named Debian packages are there, `quietly LOG
# COMMAND...` runs a command and shows its output only if it fails.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=${PIPE_JOBS:-$(nproc)}
# ccache, where it is installed, finds what another clone has compiled.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=yes CCACHE_SLOPPINESS=pch_defines,time_macros
[[ -d /usr/local/cuda/bin ]] && PATH=$PATH:/usr/local/cuda/bin

quietly() {
  local log=$1 code=0
  shift
  mkdir -p "$(dirname "$log")"
  if [[ -t 2 ]]; then progress "$log" "$@"; else "$@" >"$log" 2>&1; fi || code=$?
  ((code)) || return 0
  { grep -m 5 -E '(^|[ :])(error|Error|ERROR)( #[0-9]+)?[: ]' "$log" || true; echo "[...]"; tail -n 40 "$log"; } >&2
  echo "failed: $* (the whole output is in $log)" >&2
  exit 1
}

# progress LOG COMMAND...: runs a command, and keeps its newest line in one line of the terminal.
progress() {
  local log=$1 line begin=$SECONDS width code=0
  shift
  width=$(tput cols 2>/dev/null) || width=80
  "$@" 2>&1 | tee "$log" | while IFS= read -r line; do
    # The number of the step and the name of what it makes: [3/8] main.cpp.o
    [[ $line =~ ^(\[[0-9]+/[0-9]+\]).*[\ /]([^\ /]+)$ ]] && line="${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
    line="$((SECONDS - begin)) s $line"
    printf '\r\e[K%s' "${line:0:width-1}" >&2
  done || code=$?
  printf '\r\e[K' >&2
  return $code
}

# What a package is for, found however it was installed.
present() {
  case $1 in
    g++ | cmake | git | mmdebstrap | python3) command -v "$1" ;;
    ninja-build) command -v ninja ;;
    libboost-dev) has_header boost/hana.hpp ;;
    catch2) has_header catch2/catch_test_macros.hpp || has_header catch2/catch.hpp ;;
    libcli11-dev) has_header CLI/CLI.hpp ;;
    libpng-dev) has_header png.h ;;
    libfreetype-dev) [[ -e /usr/include/freetype2/ft2build.h ]] ;;
    fonts-*) dpkg-query -W -f='${Status}' "$1" | grep -q ' installed' ;;
    libturbojpeg0-dev) has_header turbojpeg.h ;;
    libbenchmark-dev) has_header benchmark/benchmark.h ;;
    libopenblas-dev) has_header openblas_config.h ;;
    openmpi-bin) command -v mpirun ;;
    libopenmpi-dev) command -v mpicxx ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
  esac >/dev/null 2>&1
}

has_header() { echo "#include <$1>" | g++ -std=c++20 -x c++ -fsyntax-only -; }

need() {
  local package missing=() as_root=()
  for package in "$@"; do present "$package" || missing+=("$package"); done
  if ((${#missing[@]})); then
    ((EUID == 0)) || as_root=(sudo -n)
    if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
      echo "missing: ${missing[*]} (Debian's names): install them and run this again" >&2
      exit 1
    fi
    echo "installing ${missing[*]}"
    quietly "$root/build/apt.log" "${as_root[@]}" apt-get update
    quietly "$root/build/apt.log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "${missing[@]}"
  fi
  if command -v g++ >/dev/null && (($(g++ -dumpversion | cut -d. -f1) < 12)); then
    echo "g++ is version $(g++ -dumpversion): pipe needs 12 or newer" >&2
    exit 1
  fi
}

# unpack FOLDER PACKAGE...: the files of Debian packages, below a folder, without installing them: also those that a minimal system leaves out of
# packages that it has (dpkg's path-exclude).
unpack() {
  local folder=$1 as_root=() package
  [[ -e $folder/complete ]] && return
  if ! command -v apt-get >/dev/null; then
    echo "missing: files of the Debian packages ${*:2}" >&2
    return 1
  fi
  ((EUID == 0)) || as_root=(sudo -n)
  mkdir -p "$folder/packages"
  echo "unpacking ${*:2} in ${folder#"$root"/}" >&2
  (cd "$folder/packages" && apt-get download "${@:2}" >/dev/null 2>&1) ||
    { quietly "$root/build/apt.log" "${as_root[@]}" apt-get update &&
      (cd "$folder/packages" && quietly "$root/build/apt.log" apt-get download "${@:2}"); }
  for package in "$folder"/packages/*.deb; do dpkg-deb -x "$package" "$folder"; done
  rm -r "$folder/packages"
  touch "$folder/complete"
}

# build PRESET [TARGET...]: configures, with the settings of the array `configure`, and builds into build/PRESET.
configure=()
build() {
  local preset=$1 targets=("${@:2}")
  quietly "$root/build/$preset-configure.log" cmake -S "$root" --preset "$preset" "${configure[@]}"
  quietly "$root/build/$preset-build.log" \
    cmake --build "$root/build/$preset" --parallel "$jobs" ${targets:+--target "${targets[@]}"}
}
