// SPDX-License-Identifier: BSL-1.0
//
// The test runner's own main, compiled once and linked into every test executable.
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

int main(int count, char** arguments) { return Catch::Session().run(count, arguments); }
