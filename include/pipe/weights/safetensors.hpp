// SPDX-License-Identifier: BSL-1.0
//
// A whole safetensors file in memory, for programs that read arbitrary tensors. Loading of weights
// (weights/weights.hpp) does not need this class.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/weights/safetensors_reader.hpp>
#include <pipe/weights/safetensors_writer.hpp>

namespace pp {

/// A safetensors file in memory. Views of tensors stay valid as long as the object, also after a
/// move.
///
/// throws: file_error if the file cannot be read or memory is exhausted; data_error if it violates
///         the format
class safetensors_file {
 public:
  explicit safetensors_file(std::string const& path) : safetensors_file(safetensors_reader(path)) {}
  /// Reads from bytes in memory, which are copied. `name`: for messages.
  safetensors_file(std::span<std::byte const> bytes, std::string const& name)
      : safetensors_file(safetensors_reader(bytes, name)) {}

  std::string const& name() const { return name_; }
  /// All tensors, in the order of their bytes.
  std::vector<safetensors_entry> const& tensors() const { return tensors_; }
  detail::safetensors_metadata const& metadata() const { return metadata_; }

  /// The tensor with the name `tensor`, or nullptr.
  safetensors_entry const* find(std::string_view tensor) const;

 private:
  explicit safetensors_file(safetensors_reader from);

  std::string name_;
  detail::owner<std::byte, detail::delete_memory> data_;
  std::vector<safetensors_entry> tensors_;
  detail::name_index by_name_;
  detail::safetensors_metadata metadata_;
};

}  // namespace pp
#ifdef PIPE_DEFINED
#include <pipe/weights/safetensors.inl>
#endif
