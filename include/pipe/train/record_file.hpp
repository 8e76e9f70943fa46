// SPDX-License-Identifier: BSL-1.0
//
// A file that grows record by record while a run goes on: what was written can be read at once, by another program too, and
// a disk that is full costs the record it had no room for, not the file.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/train/file_descriptor.hpp>

namespace pp {

/// throws: file_error, naming the file and the reason
class record_file {
 public:
  /// What a file of that name is to become of: `replace` it, or, for `fresh`, there must be none.
  enum class start : unsigned char { replace, fresh };

  explicit record_file(std::string path, start how = start::replace)
      : path_(std::move(path)), file_(path_, O_WRONLY | O_CREAT | (how == start::fresh ? O_EXCL : O_TRUNC)) {
    if (!file_.is_open()) throw_file_error("write metrics to", path_);
  }

  std::string const& path() const { return path_; }

  /// law: the file ends with this record, or, if that fails, with the one before
  void append(std::string_view record) {
    if (!file_.write(std::as_bytes(std::span(record.data(), record.size())))) {
      int const reason = errno;
      [[maybe_unused]] bool const restored =
          ::ftruncate(file_.number(), off_t(bytes_)) == 0 && ::lseek(file_.number(), off_t(bytes_), SEEK_SET) >= 0;
      errno = reason;
      throw_file_error("write metrics to", path_);
    }
    bytes_ += record.size();
  }

 private:
  std::string path_;
  file_descriptor file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace pp
