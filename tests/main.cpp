// SPDX-License-Identifier: BSL-1.0
//
// The test runner's own main, compiled once and linked into every test executable.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
