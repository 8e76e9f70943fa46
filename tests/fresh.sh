#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# tests/fresh.sh [--bare] [--clang] [--cuda] [--only examples|tests] [--cache FOLDER] [--keep] [TESTS ARGUMENT...]: README's two commands on
# a fresh machine. Makes an empty Debian 12 in a folder, clones HEAD into it and runs `examples/run.sh --steps 30` and
# `tests/run.sh [TESTS ARGUMENT...]` there: as it is (--bare), with Debian's clang (--clang), with that and this machine's CUDA Toolkit
# (--cuda); the first two if none is named. With --cache a machine has Debian's ccache too, and finds in FOLDER what another has
# compiled. Takes as long as the two commands and a minute; removes what it made, or with --keep says where it is. Needs root.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

machines=() only= keep= cache=
while (($#)); do
  case $1 in
    --bare | --clang | --cuda) machines+=("${1#--}"); shift ;;
    --only) only=${2:-}; shift 2 ;;
    --cache) cache=$(realpath -m "${2:?--cache takes a folder}"); shift 2 ;;
    --keep) keep=yes; shift ;;
    -h | --help) sed -n '4,8s/^# //p' "${BASH_SOURCE[0]}"; exit ;;
    *) break ;;
  esac
done
if [[ ! $only =~ ^(|examples|tests)$ ]]; then
  echo "--only takes examples or tests, not '$only'" >&2
  exit 2
fi
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

# Packages come from where this machine gets them, by its settings of apt and pip.
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do [[ ! -s $file ]] || sources+=("$file"); done
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
for machine in "${machines[@]}"; do
  echo "--- $machine: an empty Debian 12"
  quietly "$root/build/fresh-$machine.log" \
    mmdebstrap --quiet --variant=minbase "${settings[@]}" bookworm "$folder/$machine" "${sources[@]}"
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
    [[ ! -e $file ]] || install -m 644 "$file" "$folder/$machine/etc/"
  done
  [[ ! -e $certificates ]] || install -m 644 "$certificates" "$folder/$machine/etc/certificates.pem"
  git clone --quiet --no-local --depth 1 "file://$root" "$folder/$machine/$root"
  more=()
  [[ $machine == bare ]] || more+=(clang)
  [[ $machine != cuda ]] || mkdir "$folder/$machine/usr/local/cuda"
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
    if within "$machine" $command; then echo "--- $machine: passed: $command"; else
      failed=1
      echo "--- $machine: FAILED: $command"
    fi
  done
  [[ $keep ]] || rm -rf --one-file-system "${folder:?}/$machine"
done
exit $failed
