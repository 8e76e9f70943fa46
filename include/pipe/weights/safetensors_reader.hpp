// SPDX-License-Identifier: BSL-1.0
//
// Reader of safetensors files: named arrays, in a format shared with other frameworks that contains
// only data. Files may come from untrusted sources, so the header is validated against the file's
// size before any data is read, and memory is allocated only for requested data.
//
//     8 bytes    length of the header, little-endian
//     header     {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//                 "__metadata__": {"a": "b"}}
//     the rest   the data; offsets count from its beginning
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/safetensors_header.hpp>

namespace pp {

namespace detail {

/// Ends memory that is uninitialised.
struct delete_memory {
  void operator()(void* at) const { ::operator delete(at); }
};
/// Uninitialised memory for `count` bytes of a file. `of`: their description in messages.
///
/// throws: file_error with the file and the size, if memory is exhausted
[[gnu::cold]] owner<std::byte, delete_memory> memory_for(std::uint64_t count, char const* of,
                                                         std::string const& file);

}  // namespace detail

/// An open safetensors file with a validated header. Tensor data is read on request.
///
/// throws: file_error if the file cannot be read or memory is exhausted; data_error if it violates
///         the format
class safetensors_reader {
 public:
  /// Opens a file and reads its header. O_NONBLOCK: opening a pipe returns at once, so that the
  /// pipe is refused and no writer is waited for.
  [[gnu::cold]] explicit safetensors_reader(std::string path);
  /// Reads from bytes in memory, which must outlive the reader. `name`: for messages.
  [[gnu::cold]] safetensors_reader(std::span<std::byte const> bytes, std::string name);

  std::string const& name() const { return name_; }
  /// All tensors, in the order of their bytes.
  detail::row_list<detail::safetensors_place> const& tensors() const { return header_.tensors; }
  detail::safetensors_metadata const& metadata() const { return header_.metadata; }
  /// Moves the header out of the reader.
  detail::safetensors_header take_header() { return std::move(header_); }
  /// The bytes before the data: the header's length, and the header.
  [[gnu::cold]] detail::row_list<std::byte> preamble() const;
  /// Size of the file.
  std::uint64_t bytes() const { return data_begin_ + data_bytes_; }
  /// Size of the data of all tensors.
  std::uint64_t data_bytes() const { return data_bytes_; }

  /// Fills `to` with data from offset `begin` on, such as a tensor's [begin, end).
  [[gnu::cold]] void read(std::uint64_t begin, std::span<std::byte> to) const;
  /// Fills `to` with bytes of a tensor, from number `from` on. needs: the tensor has that many
  /// numbers
  [[gnu::cold]] void read(detail::safetensors_place const& tensor, std::span<std::byte> to,
                          std::uint64_t from = 0) const;

 private:
  /// Throws data_error with the name of the file.
  [[noreturn, gnu::cold]] void refuse(detail::text_parts what) const;

  /// Fills `to` with bytes from position `at` of the file or of the memory.
  ///
  /// needs: [at, at + to.size()) is inside the memory, where bytes_ are read
  /// throws: file_error if reading fails, data_error if the file ends earlier
  [[gnu::cold]] void read_at(std::uint64_t at, std::span<std::byte> to) const;

  /// Reads and validates the header. The length that the file declares for the header is compared
  /// with the file's size before memory is allocated.
  [[gnu::cold]] void read_header(std::uint64_t file_bytes);

  std::string name_;
  detail::file_descriptor file_;
  // The bytes that are read if file_ is not open.
  std::span<std::byte const> bytes_;
  std::uint64_t data_begin_ = 0, data_bytes_ = 0;
  detail::safetensors_header header_;
};

}  // namespace pp
#ifdef PIPE_DEFINED
#include <pipe/weights/safetensors_reader.inl>
#endif
