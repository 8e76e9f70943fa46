// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/file_descriptor.hpp.

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <pipe/base/uninterrupted.hpp>

namespace pp::detail {

PIPE_DEFINED void throw_file_error(char const* what, std::string const& path) {
  int const reason = errno;
  throw_error<file_error>({"cannot ", what, " '", path, "': ", std::strerror(reason)});
}
PIPE_DEFINED file_descriptor::file_descriptor(std::string const& path, int flags, mode_t mode) {
  // O_CLOEXEC: programs that this one starts do not inherit the descriptor.
  number_ = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}
PIPE_DEFINED file_descriptor& file_descriptor::operator=(file_descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}
PIPE_DEFINED file_descriptor::~file_descriptor() {
  if (number_ >= 0) ::close(number_);
}
PIPE_DEFINED std::int64_t file_descriptor::read(std::uint64_t at, std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    ssize_t const count = uninterrupted(
        [&] { return ::pread(number_, to.data() + done, to.size() - done, off_t(at + done)); });
    if (count < 0) return -1;
    if (count == 0) break;
    done += std::size_t(count);
  }
  return std::int64_t(done);
}
PIPE_DEFINED bool file_descriptor::write(std::span<std::byte const> from) const {
  while (!from.empty()) {
    ssize_t const count = uninterrupted([&] { return ::write(number_, from.data(), from.size()); });
    if (count < 0) return false;
    from = from.subspan(std::size_t(count));
  }
  return true;
}
PIPE_DEFINED void file_descriptor::begin_sync([[maybe_unused]] std::uint64_t begin,
                                              [[maybe_unused]] std::uint64_t count) const {
#ifdef SYNC_FILE_RANGE_WRITE
  ::sync_file_range(number_, off_t(begin), off_t(count), SYNC_FILE_RANGE_WRITE);
#endif
}
PIPE_DEFINED bool file_descriptor::sync() const {
  return uninterrupted([&] { return ::fsync(number_); }) == 0;
}
PIPE_DEFINED bool file_descriptor::resize(std::uint64_t bytes) const {
  return uninterrupted([&] { return ::ftruncate(number_, off_t(bytes)); }) == 0;
}
PIPE_DEFINED bool file_descriptor::lock() const {
  return uninterrupted([&] { return ::flock(number_, LOCK_EX | LOCK_NB); }) == 0;
}
PIPE_DEFINED bool file_descriptor::flush() const {
  int const copy = ::dup(number_);
  return copy < 0 || ::close(copy) == 0 || errno == EINTR;  // EINTR: the duplicate is closed, too
}

}  // namespace pp::detail
