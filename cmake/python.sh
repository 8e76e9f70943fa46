#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# python.sh [PACKAGE...]: prints the path of a Python that has these packages (torch and numpy, when none is named): $PIPE_PYTHON, or a
# virtual environment in build/ that is made, and gets what it lacks, on first use.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

(($#)) || set -- torch numpy
if [[ -z ${PIPE_PYTHON:-} ]]; then
  folder=$root/build/python
  PIPE_PYTHON=$folder/bin/python
  missing=()
  for package in "$@"; do
    "$PIPE_PYTHON" -c "import $package" 2>/dev/null || missing+=("$package")
  done
  if ((${#missing[@]})); then
    need python3 python3-venv >&2
    echo "installing ${missing[*]} in build/python" >&2
    "$PIPE_PYTHON" -m pip --version >/dev/null 2>&1 ||
      quietly "$root/build/python.log" python3 -m venv --clear "$folder"
    quietly "$root/build/python.log" "$PIPE_PYTHON" -m pip install "${missing[@]}"
  fi
fi
echo "$PIPE_PYTHON"
