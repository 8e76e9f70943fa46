// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

/// The plan of the program, a number.
std::uint64_t plan_of_program();
