// SPDX-License-Identifier: BSL-1.0
//
// The file of a checkpoint: a safetensors file whose last tensor has the checksums of the header
// and of every other tensor, so that it is written in one pass and no flipped bit goes unnoticed.
//
//     "__metadata__": {"checkpoint": "1", ...}     the version of the format
//     "checksums": U8 [1 + tensors, 4]             CRC-32C, little-endian: of all bytes before the
//                                                  data, then of each tensor, in their order
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/io/atomic_file.hpp>
#include <pipe/io/crc32c.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/safetensors_reader.hpp>

namespace pp::detail {

/// The format that is written, and the newest that is read.
inline constexpr int checkpoint_format = 1;
/// The name of the format's entry in the metadata, and the name of the last tensor.
inline constexpr char checkpoint_key[] = "checkpoint", checksums_name[] = "checksums";

/// Writes a checkpoint atomically (see atomic_file), tensor by tensor.
class checkpoint_writer {
 public:
  /// places: the tensors, larger types first; their offsets are set here
  /// like:   the file whose mode the new file takes if it replaces none
  ///
  /// throws: as write_safetensors
  [[gnu::cold]] checkpoint_writer(std::string const& path, row_list<safetensors_place> places,
                                  safetensors_metadata metadata, std::string const& like = {});
  /// Writes a block of the next tensor.
  [[gnu::cold]] void write(std::span<std::byte const> bytes);
  /// All blocks of a tensor are written.
  [[gnu::cold]] void end_tensor();
  /// Writes the next tensor, in one block.
  [[gnu::cold]] void write_tensor(std::span<std::byte const> bytes);
  /// needs: all tensors are written
  [[gnu::cold]] void commit();

 private:
  atomic_file file_;
  row_list<std::byte> sums_;
  std::uint32_t sum_ = 0;  // of the blocks of the next tensor so far
};

/// An open checkpoint whose header is sound. Tensors are checked when they are read.
///
/// law:    a file with a flipped bit is refused, here or when the tensor with the bit is read
/// cost:   memory for the header; tensors are read into memory of the caller
/// throws: file_error if the file cannot be read; data_error if it is no checkpoint, or damaged
class checkpoint_reader {
 public:
  [[gnu::cold]] explicit checkpoint_reader(std::string const& path);

  /// The number of tensors; tensor i.
  std::size_t size() const { return file_.tensors().size() - 1; }
  safetensors_place const& operator[](std::size_t i) const { return file_.tensors()[i]; }
  /// An entry of the metadata, or null.
  [[gnu::cold]] kept_text const* metadata(std::string_view name) const;
  /// Reads a tensor.
  ///
  /// shape:  to[end - begin]
  /// throws: data_error if the bytes are not those that were written
  [[gnu::cold]] void read(std::size_t i, std::span<std::byte> to) const;
  /// Reads a tensor block by block: calls use(bytes) for blocks of the size of `room`, and for the
  /// rest.
  ///
  /// throws: data_error, when all bytes were used, if they are not those that were written
  [[gnu::cold]] void read(std::size_t i, std::span<std::byte> room,
                          function_ref<void(std::span<std::byte const>)> use) const;
  std::string const& name() const { return file_.name(); }
  /// Size of the file, and a checksum of the whole file: the checksum of its checksums.
  std::uint64_t bytes() const { return file_.bytes(); }
  std::uint32_t checksum() const { return crc32c({sums_.data(), sums_.size()}); }
  /// Throws data_error with the name of the file.
  [[noreturn, gnu::cold]] void refuse(text_parts why) const;

 private:
  [[gnu::cold]] void require_sum(std::size_t i, std::uint32_t found) const;
  /// A checksum that was written: for i = 0 the header's, otherwise that of tensor i - 1.
  std::uint32_t checksum(std::size_t i) const {
    return little_endian<std::uint32_t>(sums_.data() + 4 * i);
  }

  safetensors_reader file_;
  row_list<std::byte> sums_;
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/checkpoint/checkpoint_file.inl>
#endif
