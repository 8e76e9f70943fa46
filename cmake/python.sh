#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# Prints the path of a Python that has torch and numpy: $PIPE_PYTHON, or a virtual environment in build/ made on first use.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

if [[ -z ${PIPE_PYTHON:-} ]]; then
  folder=$root/build/python
  PIPE_PYTHON=$folder/bin/python
  if ! [[ -e $folder/ready ]]; then
    need python3 python3-venv >&2
    echo "installing torch and numpy in build/python" >&2
    quietly "$root/build/python.log" python3 -m venv --clear "$folder"
    quietly "$root/build/python.log" "$PIPE_PYTHON" -m pip install torch numpy
    touch "$folder/ready"
  fi
fi
echo "$PIPE_PYTHON"
