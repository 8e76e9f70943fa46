// SPDX-License-Identifier: BSL-1.0
//
// A file that grows record by record during a run. Each record can be read at once, by other
// programs too, and a full disk loses the record that does not fit, not the file.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/io/file_descriptor.hpp>

namespace pp {

/// An append-only file of records. Opening a pipe without a reader is an error; it does not block.
///
/// throws: file_error with the name and the reason
class record_file {
 public:
  /// The treatment of an existing file of that name: `replace` empties it, `fresh` refuses it,
  /// `beside` leaves it and takes the next free name (metrics.csv, metrics-2.csv ...). Devices,
  /// pipes and the target of /dev/stdout are written to.
  enum class start : unsigned char { replace, fresh, beside };

  /// Opens the file, or creates it.
  ///
  /// throws: file_error if that fails: with `fresh` also if the file exists, and in all cases for a
  ///         pipe without a reader
  explicit record_file(std::string path, start how = start::replace) : path_(std::move(path)) {
    std::string const asked = path_;
    for (long number = 2;; ++number) {
      open(how == start::replace ? O_TRUNC : O_EXCL);
      if (how != start::beside || file_.is_open() || errno != EEXIST) break;
      struct stat there{};
      // A device or a pipe has no next name. Others may write to it, so append() never truncates
      // it.
      if (path_.starts_with("/dev/") ||
          (::stat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode))) {
        open(O_APPEND);
        is_alone_ = false;
        break;
      }
      path_ = numbered(asked, number);
    }
    // O_NONBLOCK made open() fail with ENXIO instead of waiting for a reader. It is cleared after
    // that, so that writes wait until a full pipe has room.
    if (!file_.is_open() && errno == ENXIO)
      throw file_error("cannot write metrics to '" + path_ + "': it is a pipe without a reader");
    if (!file_.is_open() ||
        ::fcntl(file_.number(), F_SETFL, ::fcntl(file_.number(), F_GETFL) & ~O_NONBLOCK) != 0)
      detail::throw_file_error("write metrics to", path_);
  }

  /// The name of the file that is written: with `beside`, possibly a numbered one.
  std::string const& path() const { return path_; }

  /// Writes a record at the end.
  ///
  /// law: the file ends with this record, or, if that fails, with the one before (unless something
  ///      else writes to the file)
  void append(std::string_view record) {
    if (!file_.write(std::as_bytes(std::span(record.data(), record.size())))) {
      int const reason = errno;
      // Part of the record may have been written. If it cannot be cut off, the reason of the failed
      // write is still the one to report.
      [[maybe_unused]] bool const restored = is_alone_ &&
                                             ::ftruncate(file_.number(), off_t(bytes_)) == 0 &&
                                             ::lseek(file_.number(), off_t(bytes_), SEEK_SET) >= 0;
      errno = reason;
      detail::throw_file_error("write metrics to", path_);
    }
    bytes_ += record.size();
  }

 private:
  /// Opens path_ for writing, with `how` as a further flag; see file_descriptor for failures.
  void open(int how) {
    file_ = detail::file_descriptor(path_, O_WRONLY | O_NONBLOCK | O_CREAT | how);
  }
  /// folder/name.end -> folder/name-2.end
  /// A name without an ending, or with a dot only at its beginning, gets the number at its end.
  static std::string numbered(std::string const& path, long number) {
    std::size_t const dot = path.rfind('.');
    bool const has_ending =
        dot != path.npos && path.find('/', dot) == path.npos && dot > 0 && path[dot - 1] != '/';
    std::size_t const end = has_ending ? dot : path.size();
    return path.substr(0, end) + "-" + std::to_string(number) + path.substr(end);
  }

  std::string path_;
  detail::file_descriptor file_;
  // The bytes of all complete records, at which append() truncates after a failure.
  std::uint64_t bytes_ = 0;
  bool is_alone_ = true;  // false: an existing device or pipe, to which others may write
};

}  // namespace pp
