// SPDX-License-Identifier: BSL-1.0
//
// The memory of a heartbeat: that of the launcher, and no other file.
#include "catch.hpp"

#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include <pipe/base/heartbeat.hpp>

using pp::detail::heartbeat_memory;

namespace {

/// A file in memory with these bytes.
int file_of(void const* bytes, std::size_t size) {
  int const file = memfd_create("test", MFD_CLOEXEC);
  REQUIRE(file >= 0);
  REQUIRE(write(file, bytes, size) == ssize_t(size));
  return file;
}

}  // namespace

TEST_CASE("a heartbeat is shared by those who have its file") {
  heartbeat_memory const fresh{};
  int const file = file_of(&fresh, sizeof(fresh));
  heartbeat_memory *const one = heartbeat_memory::behind(file), *const other =
                                                                    heartbeat_memory::behind(file);
  REQUIRE(one != nullptr);
  REQUIRE(other != nullptr);
  CHECK(other->beats == 0);
  one->beats = 7;
  CHECK(other->beats == 7);
  munmap(one, sizeof(*one));
  munmap(other, sizeof(*other));
  close(file);
}

TEST_CASE("another file is no heartbeat, and is not written to") {
  CHECK(heartbeat_memory::behind(-1) == nullptr);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK(heartbeat_memory::behind(ends[1]) == nullptr);
  close(ends[0]);
  close(ends[1]);
  for (std::size_t const size :
       {std::size_t(0), sizeof(heartbeat_memory) - 1, sizeof(heartbeat_memory), std::size_t(100)}) {
    std::string const text(size, 'x');
    int const file = file_of(text.data(), size);
    CHECK(heartbeat_memory::behind(file) == nullptr);
    close(file);
  }
}
