// SPDX-License-Identifier: BSL-1.0
//
// The text that this example learns when it is given no other: the C++ standard library's headers,
// which are on every machine that can build it. Where they are, the compiler says.
#pragma once

#include <filesystem>
#include <string>

/// The directory of the first compiler's `vector`, among g++, c++, clang++ and the one that built
/// this program. Throws pp::data_error if there is none.
std::filesystem::path standard_library_headers();
