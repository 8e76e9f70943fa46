// SPDX-License-Identifier: BSL-1.0
//
// Safetensors: named arrays in a file that other frameworks read and write, and that holds nothing but data. A file may
// come from anybody, so its header is proven against the size of the file before a byte of data is read.
//
//     8 bytes    length of the header, little-endian
//     header     {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"a": "b"}}
//     the rest   the data; offsets count from its beginning
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/train/file_descriptor.hpp>
#include <pipe/train/safetensors_header.hpp>
#include <pipe/train/safetensors_writer.hpp>

namespace pp {

/// A file in memory. Tensors stay valid as long as it lives, also when it is moved.
///
/// throws: file_error if the file cannot be read, data_error if it is not exactly what the format asks for
class safetensors_file {
 public:
  explicit safetensors_file(std::string path) : name_(std::move(path)) {
    file_descriptor const file(name_, O_RDONLY | O_NONBLOCK);
    struct stat about{};
    if (!file.is_open() || ::fstat(file.number(), &about) != 0) throw_file_error("read", name_);
    if (!S_ISREG(about.st_mode)) throw file_error("cannot read '" + name_ + "': it is not a file");
    read(std::uint64_t(about.st_size), [&](std::uint64_t at, std::span<std::byte> to) {
      std::int64_t const count = file.read(at, to);
      if (count < 0) throw_file_error("read", name_);
      if (std::size_t(count) < to.size()) refuse("it became shorter while it was read");
    });
  }

  /// The same from bytes in memory, which are copied; `name` is said in messages.
  safetensors_file(std::span<std::byte const> bytes, std::string name) : name_(std::move(name)) {
    read(bytes.size(), [&](std::uint64_t at, std::span<std::byte> to) {
      std::copy_n(bytes.begin() + std::ptrdiff_t(at), to.size(), to.begin());
    });
  }

  std::string const& name() const { return name_; }
  /// In the order of their bytes.
  std::vector<safetensors_entry> const& tensors() const { return tensors_; }
  safetensors_metadata const& metadata() const { return metadata_; }

  /// nullptr if there is no such tensor.
  safetensors_entry const* find(std::string_view tensor) const {
    auto const at = std::lower_bound(by_name_.begin(), by_name_.end(), tensor,
                                     [&](std::size_t i, std::string_view name) { return tensors_[i].name < name; });
    return at != by_name_.end() && tensors_[*at].name == tensor ? &tensors_[*at] : nullptr;
  }

 private:
  [[noreturn]] void refuse(std::string const& what) const { throw data_error("'" + name_ + "': " + what); }

  /// read_at(place, to) fills `to` with the bytes at a place of the file.
  template <class ReadAt>
  void read(std::uint64_t file_bytes, ReadAt read_at) {
    std::byte length[8];
    if (file_bytes < sizeof length)
      refuse("a safetensors file has at least 8 bytes, found " + std::to_string(file_bytes));
    read_at(0, length);
    std::uint64_t const header_bytes = little_endian<std::uint64_t>(length), rest = file_bytes - sizeof length;
    if (header_bytes > safetensors_header::most_bytes)
      refuse("a header has at most " + std::to_string(safetensors_header::most_bytes) + " bytes, this one claims " +
             std::to_string(header_bytes));
    if (header_bytes > rest)
      refuse("the header claims " + std::to_string(header_bytes) + " bytes, but only " + std::to_string(rest) +
             " are left in the file");
    std::string text(std::size_t(header_bytes), ' ');
    read_at(sizeof length, std::as_writable_bytes(std::span(text.data(), text.size())));
    std::uint64_t const data_bytes = rest - header_bytes;
    safetensors_header header = parse_safetensors_header(text, data_bytes, name_);

    data_ = std::make_unique_for_overwrite<std::byte[]>(std::size_t(data_bytes));
    read_at(sizeof length + header_bytes, {data_.get(), std::size_t(data_bytes)});
    for (safetensors_place& p : header.tensors)
      tensors_.push_back(
          {std::move(p.name), p.type, std::move(p.shape), {data_.get() + p.begin, std::size_t(p.end - p.begin)}});
    metadata_ = std::move(header.metadata);
    for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.push_back(i);
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
  }

  std::string name_;
  std::unique_ptr<std::byte[]> data_;
  std::vector<safetensors_entry> tensors_;
  std::vector<std::size_t> by_name_;
  safetensors_metadata metadata_;
};

}  // namespace pp
