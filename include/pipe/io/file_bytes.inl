// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/file_bytes.hpp.

#include <cstddef>

#include <fcntl.h>
#include <sys/stat.h>

#include <pipe/io/file_descriptor.hpp>

namespace pp::detail {

PIPE_DEFINED std::string file_bytes(std::string const& path, std::int64_t most) {
  file_descriptor const file(path, O_RDONLY | O_NONBLOCK);
  struct stat there{};
  if (!file.is_open() || ::fstat(file.number(), &there) != 0) throw_file_error("read", path);
  if (!S_ISREG(there.st_mode))
    throw_error<file_error>({"cannot read '", path, "': it is not a file"});
  if (there.st_size > most)
    throw_error<data_error>(
        {"'", path, "': expected at most ", most, " bytes, found ", there.st_size});
  std::string bytes;
  try {
    bytes.resize(std::size_t(there.st_size));
  } catch (std::exception const&) {  // bad_alloc, length_error
    throw_error<no_memory_for_file>(
        {"cannot read '", path, "': no memory for its ", there.st_size, " bytes"});
  }
  std::int64_t const found =
      file.read(0, {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
  if (found < 0) throw_file_error("read", path);
  if (found != std::int64_t(bytes.size()))
    throw_error<data_error>({"'", path, "' has become shorter while it was read"});
  return bytes;
}

}  // namespace pp::detail
