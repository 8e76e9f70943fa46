// SPDX-License-Identifier: BSL-1.0
//
// A file that grows record by record during a run. Each record can be read at once, by other
// programs too, and a full disk loses the record that does not fit, not the file. The file of a run
// that is resumed goes on where the run does.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <pthread.h>

#include <pipe/io/atomic_file.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/io/numbered_name.hpp>

namespace pp {

namespace detail {

/// Locks a file that is being written. False if another object has the lock.
inline bool lock_file(file_descriptor const& file) { return file.lock() || errno != EWOULDBLOCK; }

/// All bytes of a file. throws: file_error
inline std::string read_records(file_descriptor const& file, std::string const& path,
                                std::uint64_t size) {
  std::string all(std::size_t(size), '\0');
  std::int64_t const read = file.read(0, std::as_writable_bytes(std::span(all.data(), all.size())));
  if (read < 0) throw_file_error("read", path);
  all.resize(std::size_t(read));
  return all;
}

/// During the life of this object a write of its thread to a pipe without a reader fails with
/// EPIPE, and raises no SIGPIPE.
class no_broken_pipe {
 public:
  explicit no_broken_pipe(bool needed = true) : needed_(needed) {
    if (!needed_) return;
    sigemptyset(&only_);
    sigaddset(&only_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    // A SIGPIPE that was pending before stays pending.
    needed_ =
        sigismember(&pending, SIGPIPE) == 0 && pthread_sigmask(SIG_BLOCK, &only_, &before_) == 0;
  }
  no_broken_pipe(no_broken_pipe const&) = delete;
  no_broken_pipe& operator=(no_broken_pipe const&) = delete;
  ~no_broken_pipe() {
    if (!needed_) return;
    int const reason = errno;
    timespec const now{};
    while (sigtimedwait(&only_, nullptr, &now) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = reason;
  }

 private:
  bool needed_;
  sigset_t only_{}, before_{};
};

}  // namespace detail

namespace files {

/// An append-only file of records. Opening a pipe without a reader is an error; it does not block.
/// Nor does a reader that leaves end the program by SIGPIPE.
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
      path_ = detail::numbered_name(asked, number);
    }
    // O_NONBLOCK made open() fail with ENXIO instead of waiting for a reader. It is cleared after
    // that, so that writes wait until a full pipe has room.
    if (!file_.is_open() && errno == ENXIO)
      throw file_error("cannot write metrics to '" + path_ + "': it is a pipe without a reader");
    if (!file_.is_open() ||
        ::fcntl(file_.number(), F_SETFL, ::fcntl(file_.number(), F_GETFL) & ~O_NONBLOCK) != 0)
      detail::throw_file_error("write metrics to", path_);
    struct stat there{};
    is_regular_ = ::fstat(file_.number(), &there) == 0 && S_ISREG(there.st_mode);
    // For resumed(), which finds this writer by its lock, where the system has locks.
    if (is_regular_) detail::lock_file(file_);
  }

  /// The file of a run that is resumed after `steps` steps. It is continued if it begins with
  /// `heading` and at least one line of a step up to `steps`, and no other object writes to it;
  /// later lines are moved to PATH.dropped, which is replaced. Any other file is left alone, as
  /// with `beside`; so is every file if `steps` is 0, since that is the start of a run.
  ///
  /// step_of(line): its step, or -1 for one that is no record
  /// law:    no byte of any file is lost, but those of an earlier PATH.dropped
  /// cost:   the file is read into memory
  /// throws: file_error
  template <class StepOf>
  static record_file resumed(std::string const& path, long steps, std::string_view heading,
                             StepOf step_of) {
    struct stat there{};
    detail::file_descriptor file;
    // The path is opened only if it is a file: a pipe would get this program as its reader.
    if (steps > 0 && ::stat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode))
      file = detail::file_descriptor(path, O_RDWR | O_NONBLOCK);
    if (file.is_open() && ::fstat(file.number(), &there) == 0 && S_ISREG(there.st_mode) &&
        detail::lock_file(file)) {
      std::string const all = detail::read_records(file, path, std::uint64_t(there.st_size));
      std::size_t end = all.starts_with(heading) ? heading.size() : all.size();
      bool is_ours = false;
      for (std::size_t next; (next = all.find('\n', end)) != all.npos; end = next + 1) {
        long const step = step_of(std::string_view(all).substr(end, next - end));
        if (step < 0 || step > steps) break;
        is_ours = true;
      }
      if (is_ours) return record_file(path, std::move(file), all, end);
    }
    return record_file(path, start::beside);
  }

  /// Whether this object continues the file of an earlier run.
  bool is_resumed() const { return is_resumed_; }

  /// The name of the file that is written: with `beside`, possibly a numbered one.
  std::string const& path() const { return path_; }

  /// Writes a record at the end.
  ///
  /// law: the file ends with this record, or, if that fails, with the one before (unless something
  ///      else writes to the file)
  void append(std::string_view record) {
    detail::no_broken_pipe const guard(!is_regular_);
    if (!file_.write(std::as_bytes(std::span(record.data(), record.size())))) {
      int const reason = errno;
      // Part of the record may have been written. If it cannot be cut off, the reason of the failed
      // write is still the one to report.
      [[maybe_unused]] bool const restored = is_alone_ && file_.resize(bytes_) &&
                                             ::lseek(file_.number(), off_t(bytes_), SEEK_SET) >= 0;
      errno = reason;
      detail::throw_file_error("write metrics to", path_);
    }
    bytes_ += record.size();
  }

 private:
  /// Continues the open file after the first `kept` of its bytes.
  record_file(std::string path, detail::file_descriptor file, std::string_view all,
              std::size_t kept)
      : path_(std::move(path)), file_(std::move(file)), bytes_(kept), is_resumed_(true) {
    if (kept < all.size()) {
      atomic_file dropped(path_ + ".dropped");
      dropped.write(all.substr(kept));
      dropped.commit();
    }
    if (::fcntl(file_.number(), F_SETFL, ::fcntl(file_.number(), F_GETFL) & ~O_NONBLOCK) != 0 ||
        !file_.resize(kept) || ::lseek(file_.number(), off_t(kept), SEEK_SET) < 0)
      detail::throw_file_error("write metrics to", path_);
  }

  /// Opens path_ for writing, with `how` as a further flag; see file_descriptor for failures.
  void open(int how) {
    file_ = detail::file_descriptor(path_, O_WRONLY | O_NONBLOCK | O_CREAT | how);
  }

  std::string path_;
  detail::file_descriptor file_;
  // The bytes of all complete records, at which append() truncates after a failure.
  std::uint64_t bytes_ = 0;
  bool is_alone_ = true;  // false: an existing device or pipe, to which others may write
  bool is_regular_ = true, is_resumed_ = false;
};

}  // namespace files

}  // namespace pp
