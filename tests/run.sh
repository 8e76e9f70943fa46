#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
#
# tests/run.sh [CTEST ARGUMENT...]: sets up, builds and runs every test, e.g. `tests/run.sh -L schedule`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

need g++ cmake ninja-build libboost-dev catch2 libcli11-dev python3
for tool in clang++ clang-format clang-tidy chromium nvcc; do
  compgen -c "$tool" >/dev/null || echo "$tool not found: the checks with it are left out"
done

echo "building the tests in build/tests"
build tests
ctest --test-dir "$root/build/tests" --output-on-failure --no-label-summary --parallel "$jobs" "$@"
