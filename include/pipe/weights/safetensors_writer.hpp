// SPDX-License-Identifier: BSL-1.0
//
// Writing of safetensors files. Equal tensors give equal bytes, and files are written atomically:
// complete or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/io/atomic_file.hpp>
#include <pipe/weights/safetensors_header.hpp>

namespace pp {

/// A named tensor, read from or to be written to a safetensors file: a view of row-major,
/// little-endian elements.
struct safetensors_entry {
  std::string name;
  files::stored_type type = files::stored_type::f32;
  std::vector<long> shape;
  std::span<std::byte const> bytes;
  std::string other_type{};  ///< name of the type for stored_type::other
};

namespace detail {

/// A JSON string with quotes and escapes.
[[gnu::cold]] std::string json_quoted(std::string_view text);

/// Orders tensors as in a file and sets their offsets: larger types first, otherwise in the given
/// order, so that each tensor begins at a multiple of its type's size although the format allows no
/// gaps.
///
/// throws: data_error for names that are not unique, not UTF-8 or reserved, and shapes whose size
///         overflows
[[gnu::cold]] void place_tensors(row_list<safetensors_place>& tensors);

/// The bytes of a file before its data: the header's length and the header.
///
/// law: their number is a multiple of 8; the header is padded with spaces
[[gnu::cold]] std::string safetensors_preamble(row_list<safetensors_place> const& tensors,
                                               safetensors_metadata const& metadata);

}  // namespace detail

/// Writes a safetensors file atomically (see atomic_file).
///
/// law: equal arguments give equal bytes; safetensors_file reads back what was written
/// throws: data_error for tensors that the format cannot hold, file_error if the file cannot be
///         written
[[gnu::cold]] void write_safetensors(std::string const& path,
                                     std::vector<safetensors_entry> const& tensors,
                                     detail::safetensors_metadata const& metadata = {});

}  // namespace pp
#ifdef PIPE_DEFINED
#include <pipe/weights/safetensors_writer.inl>
#endif
