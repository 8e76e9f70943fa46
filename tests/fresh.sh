#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# tests/fresh.sh [--debian 12|13] [--bare] [--clang] [--cuda] [--only examples|tests] [--cache FOLDER] [--keep] [TESTS ARGUMENT...]: README's
# two commands on fresh machines. Makes an empty Debian 12 and an empty Debian 13 in folders, or the one named, clones HEAD into each and runs
# `examples/run.sh --steps 30` and `tests/run.sh [TESTS ARGUMENT...]` there: as it is, by g++ (--bare), by Debian's clang++ (--clang), by g++
# with that and this machine's CUDA Toolkit beside it (--cuda); the first two if none is named. With --cache a machine has Debian's ccache too,
# and finds in FOLDER what another has compiled. Each machine takes as long as the two commands and a minute: four of them if nothing is named.
# Removes what it made, or with --keep says where it is. Needs root.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

releases=() machines=() only= keep= cache=
while (($#)); do
  case $1 in
    --debian) releases+=("${2:-}"); shift 2 ;;
    --bare | --clang | --cuda) machines+=("${1#--}"); shift ;;
    --only) only=${2:-}; shift 2 ;;
    --cache) cache=$(realpath -m "${2:?--cache takes a folder}"); shift 2 ;;
    --keep) keep=yes; shift ;;
    -h | --help) sed -n '4,9s/^# //p' "${BASH_SOURCE[0]}"; exit ;;
    *) break ;;
  esac
done
if [[ ! $only =~ ^(|examples|tests)$ ]]; then
  echo "--only takes examples or tests, not '$only'" >&2
  exit 2
fi
declare -A suite=([12]=bookworm [13]=trixie)
((${#releases[@]})) || releases=(12 13)
for release in "${releases[@]}"; do
  if [[ ! $release || ! ${suite[$release]:-} ]]; then
    echo "--debian takes 12 or 13, not '$release'" >&2
    exit 2
  fi
done
if ((EUID)); then
  echo "tests/fresh.sh needs root: it makes a Debian in a folder and runs in it" >&2
  exit 1
fi
((${#machines[@]})) || machines=(bare clang)
need mmdebstrap git
[[ -z $(git -C "$root" status --porcelain) ]] || echo "what is not committed is left out"

folder=$(mktemp -d "${TMPDIR:-/tmp}/pipe-fresh.XXXXXX")
chmod 755 "$folder"
running=
finish() {
  [[ -z $running ]] || { kill -KILL "$running" && wait "$running"; } 2>/dev/null || true
  if [[ $keep ]]; then echo "kept: $folder"; else rm -rf --one-file-system "$folder"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

# Packages come from where this machine gets those of its own Debian, by its settings of apt and pip.
own_suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
sources_of() {  # sources_of SUITE: files of sources
  local file
  mkdir -p "$folder/sources.$1"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
    [[ -s $file ]] || continue
    sed "s/\b$own_suite\b/$1/g" "$file" >"$folder/sources.$1/${file##*/}"
    echo "$folder/sources.$1/${file##*/}"
  done
}
settings=()
while read -r line; do settings+=("--aptopt=$line"); done < <(apt-config dump | grep -iE '^Acquire::(http|https)::' || true)
passed=()
for name in http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIPE_JOBS; do [[ ! -v $name ]] || passed+=("$name=${!name}"); done
# What this machine has compiled is found, too, as the clone is in the folder of this one's name.
[[ ! $cache ]] || passed+=(CCACHE_DIR=/cache "CCACHE_BASEDIR=$root" CCACHE_NOHASHDIR=yes CCACHE_COMPILERCHECK=content)
certificates=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}
[[ ! -e $certificates ]] || passed+=(PIP_CERT=/etc/certificates.pem)

# within MACHINE COMMAND...: in the clone on that machine, as root. What is mounted for it, and runs in it, is gone when it ends.
within() {
  CACHE=$cache unshare --mount --pid --fork --kill-child bash -euc '
    for name in dev sys; do mount --rbind "/$name" "$0/$name"; done
    mount -t proc proc "$0/proc"
    [[ ! -d $0/cache ]] || mount --bind "$CACHE" "$0/cache"
    [[ ! -d $0/usr/local/cuda ]] || mount --bind /usr/local/cuda "$0/usr/local/cuda"
    exec chroot "$0" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "${@}"
  ' "$folder/$1" "${passed[@]}" bash -c 'cd "$0" && exec "$@"' "$root" "${@:2}" &
  running=$!
  local code=0
  wait "$running" || code=$?
  running=
  return $code
}

failed=0
for machine in $(for release in "${releases[@]}"; do printf "$release-%s " "${machines[@]}"; done); do
  release=${machine%-*} kind=${machine#*-}
  echo "--- $machine: an empty Debian $release"
  mapfile -t sources < <(sources_of "${suite[$release]}")
  quietly "$root/build/fresh-$machine.log" \
    mmdebstrap --quiet --variant=minbase "${settings[@]}" "${suite[$release]}" "$folder/$machine" "${sources[@]}"
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
    [[ ! -e $file ]] || install -m 644 "$file" "$folder/$machine/etc/"
  done
  [[ ! -e $certificates ]] || install -m 644 "$certificates" "$folder/$machine/etc/certificates.pem"
  git clone --quiet --no-local --depth 1 "file://$root" "$folder/$machine/$root"
  more=() by=()
  [[ $kind == bare ]] || more+=(clang)
  [[ $kind != clang ]] || by=(env CXX=clang++)
  [[ $kind != cuda ]] || mkdir "$folder/$machine/usr/local/cuda"
  if [[ $cache ]]; then
    mkdir -p "$cache" "$folder/$machine/cache"
    more+=(ccache)
  fi
  if ((${#more[@]})); then
    quietly "$root/build/fresh-$machine.log" within "$machine" apt-get update
    quietly "$root/build/fresh-$machine.log" within "$machine" env DEBIAN_FRONTEND=noninteractive apt-get install -y "${more[@]}"
  fi
  for command in "examples/run.sh --steps 30" "tests/run.sh $*"; do
    [[ -z $only || $command == "$only"/* ]] || continue
    echo "--- $machine: $command"
    # shellcheck disable=SC2086
    if within "$machine" "${by[@]}" $command; then echo "--- $machine: passed: $command"; else
      failed=1
      echo "--- $machine: FAILED: $command"
    fi
  done
  [[ $keep ]] || rm -rf --one-file-system "${folder:?}/$machine"
done
exit $failed
