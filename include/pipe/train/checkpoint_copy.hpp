// SPDX-License-Identifier: BSL-1.0
//
// A checkpoint in memory, which is written to a file while the run that it is of goes on.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pipe/train/checkpoint_file.hpp>
#include <pipe/train/safetensors_header.hpp>

namespace pp::detail {

/// The tensors of a checkpoint, made as by a checkpoint_writer and written by save(), as often as
/// asked for.
class checkpoint_copy {
 public:
  /// Takes memory for `bytes` bytes of tensors, unless it has them from the copy before.
  ///
  /// throws: std::bad_alloc
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  /// Begins a copy, and adds the bytes of the next tensor: as checkpoint_writer.
  void begin(std::vector<safetensors_place> places, safetensors_metadata metadata) {
    places_ = std::move(places);
    metadata_ = std::move(metadata);
    bytes_.clear();
    ends_.clear();
  }
  void write(std::span<std::byte const> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    ends_.push_back(bytes_.size());
  }
  void commit() {}

  /// Writes the file.
  ///
  /// throws: as checkpoint_writer
  void save(std::string const& path) const {
    checkpoint_writer file(path, places_, metadata_);
    std::size_t begin = 0;
    for (std::size_t const end : ends_)
      file.write(std::span(bytes_).subspan(begin, end - begin)), begin = end;
    file.commit();
  }

 private:
  std::vector<safetensors_place> places_;
  safetensors_metadata metadata_;
  std::vector<std::byte> bytes_;
  std::vector<std::size_t> ends_;  // of the tensors in bytes_
};

}  // namespace pp::detail
