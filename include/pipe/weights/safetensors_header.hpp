// SPDX-License-Identifier: BSL-1.0
//
// The header of a safetensors file, completely validated before memory is allocated or a tensor is
// read: unique names, shapes whose sizes fit 63 bits, and byte ranges that tile the data without
// gap or overlap. Files may come from untrusted sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/io/json_reader.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/io/sorted.hpp>
#include <pipe/weights/extents.hpp>
#include <pipe/weights/stored_type.hpp>
#include <pipe/weights/text_map.hpp>

namespace pp::detail {

/// A tensor's entry in the header: its bytes are [begin, end) of the data after the header.
struct safetensors_place {
  static constexpr bool moves_by_bytes = true;

  kept_text name;
  stored_type type = stored_type::f32;
  extents shape;
  std::uint64_t begin = 0, end = 0;
  kept_text
      other_type{};  ///< the name of an unknown type, of whose tensors only the place is known
};

/// A validated header.
struct safetensors_header {
  row_list<safetensors_place> tensors;  ///< in the order of their bytes, then of the header
  safetensors_metadata metadata;

  /// The maximum size of a header.
  static constexpr std::uint64_t most_bytes = 100'000'000;
  /// The maximum number of extents of a shape, for reading and for writing.
  static constexpr std::size_t most_extents = extents::most;
};

/// A shape as text: "[2, 3]".
[[gnu::cold]] std::string text_of_shape(std::span<long const> shape);

/// Computes the size of a tensor. Returns false if a product on the way exceeds 63 bits.
///
/// needs: extents are not negative
[[gnu::cold]] bool count_bytes(stored_type type, std::span<long const> shape, std::uint64_t& bytes);

/// Parser and validator of a header. Every message begins with `file`.
class safetensors_header_reader {
 public:
  /// Reads all of `text` into `header`.
  ///
  /// throws: data_error at the first violation of the format
  [[gnu::cold]] safetensors_header_reader(std::string_view text, std::uint64_t data_bytes,
                                          std::string_view file);

  safetensors_header header;

 private:
  /// Throws data_error about the file, or about one of its tensors.
  [[noreturn]] void refuse(text_parts what) const { throw_joined<data_error>({file_, ": "}, what); }
  [[noreturn, gnu::cold]] void refuse(std::string_view name, text_parts what) const;

  /// `__metadata__`: texts by name, or null, at most once.
  [[gnu::cold]] void read_metadata();

  /// One tensor: dtype, shape and data_offsets, each exactly once; other fields are passed over. An
  /// unknown type is kept by name, so that a file may hold tensors that are not loaded.
  [[gnu::cold]] void read_tensor(std::string const& name);

  /// data_offsets: exactly two whole numbers.
  [[gnu::cold]] void read_offsets(safetensors_place& place);

  /// Checks that offsets are in order, inside the data and as far apart as the shape needs, without
  /// overflow for any extents.
  [[gnu::cold]] void check_size(safetensors_place const& p) const;

  /// Checks that no two tensors have one name, which JSON allows.
  [[gnu::cold]] void check_names() const;

  /// Sorts tensors by the places of their bytes; empty tensors keep the header's order.
  [[gnu::cold]] void sort_by_place();

  /// Checks that each tensor begins where the previous one ends, and that the last ends with the
  /// data.
  [[gnu::cold]] void check_cover() const;

  kept_text file_;
  std::uint64_t data_bytes_;
  detail::json_reader json_;
  bool has_metadata_ = false;
};

/// Parses and validates the header of a file with `data_bytes` bytes of data. Opens no file: `file`
/// is a name for messages.
///
/// law: tensors are in the order of their bytes and tile [0, data_bytes); each known type has the
///      size of its shape; names are unique
/// throws: data_error if the header violates the format
[[gnu::cold]] safetensors_header parse_safetensors_header(std::string_view text,
                                                          std::uint64_t data_bytes,
                                                          std::string_view file);

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/weights/safetensors_header.inl>
#endif
