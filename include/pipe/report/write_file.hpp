// SPDX-License-Identifier: BSL-1.0
//
// Writing of reports to files.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <string>
#include <string_view>

#include <pipe/io/atomic_file.hpp>

namespace pp {

namespace files {

/// Writes a file atomically: see atomic_file.
///
/// throws: file_error, as atomic_file does
inline void write_file(std::string const& path, std::string_view text) {
  atomic_file file(path);
  file.write(text);
  file.commit();
}

}  // namespace files

}  // namespace pp
