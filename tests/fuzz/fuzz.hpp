// SPDX-License-Identifier: BSL-1.0
//
// What fuzz targets share: laws, input that is taken apart into decisions, and files. A target runs
// in a folder of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include <fcntl.h>

#include <pipe/io/file_descriptor.hpp>

/// Ends the program, which the fuzzer reports with the input, if a law does not hold.
inline void law(bool holds, int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "the law in line %d does not hold\n", line);
  std::abort();
}

/// Input as decisions. At its end come zeros.
class decisions {
 public:
  explicit decisions(std::span<std::uint8_t const> input) : left_(input) {}

  bool is_empty() const { return left_.empty(); }
  std::uint8_t byte() {
    std::uint8_t const next = left_.empty() ? std::uint8_t(0) : left_[0];
    left_ = left_.subspan(left_.empty() ? 0 : 1);
    return next;
  }
  /// A number below `end`, which is at most 65536.
  std::size_t below(std::size_t end) {
    std::size_t const high = byte();
    return end == 0 ? 0 : (high << 8 | byte()) % end;
  }
  /// The next bytes, at most `most`.
  std::string_view text(std::size_t most) {
    std::size_t const size = most < left_.size() ? most : left_.size();
    std::string_view const next(reinterpret_cast<char const*>(left_.data()), size);
    left_ = left_.subspan(size);
    return next;
  }
  /// All that is left.
  std::string_view rest() { return text(left_.size()); }

 private:
  std::span<std::uint8_t const> left_;
};

/// All bytes of a file; none if there is no such file.
inline std::string content(std::string const& path) {
  pp::detail::file_descriptor const file(path, O_RDONLY);
  struct stat there{};
  if (!file.is_open() || ::fstat(file.number(), &there) != 0) return "";
  std::string all(std::size_t(there.st_size), '\0');
  law(file.read(0, std::as_writable_bytes(std::span(all.data(), all.size()))) == there.st_size);
  return all;
}

/// Makes a file of these bytes.
inline void put(std::string const& path, std::string_view bytes) {
  pp::detail::file_descriptor const file(path, O_WRONLY | O_CREAT | O_TRUNC);
  law(file.is_open() && file.write(std::as_bytes(std::span(bytes))));
}
