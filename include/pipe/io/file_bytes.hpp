// SPDX-License-Identifier: BSL-1.0
//
// All bytes of a file, for formats that are checked as a whole before any byte is used.
#pragma once

#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <string>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>

namespace pp::detail {

/// All bytes of a regular file, of at most `most`.
///
/// throws: file_error if the path cannot be read, is no file, or there is no memory for the bytes;
///         data_error if the file has more bytes, or becomes shorter while it is read
[[gnu::cold]] std::string file_bytes(std::string const& path,
                                     std::int64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/file_bytes.inl>
#endif
