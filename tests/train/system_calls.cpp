// SPDX-License-Identifier: BSL-1.0
#include "system_calls.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct {
  bool armed = false;
  mishap what{};
  int left = 0, error = 0;
  bool happened = false;
} plan;

/// Whether this call is the one.
bool struck() {
  if (!plan.armed || plan.left-- != 0) return false;
  plan.happened = true;
  if (plan.what == mishap::dies) _exit(dead_by_plan);
  return true;
}

/// What a struck transfer does: fails, or moves one byte of `bytes`.
template <class Transfer>
ssize_t transfer(size_t bytes, Transfer move) {
  if (!struck() || (plan.what == mishap::short_count && bytes <= 1)) return move(bytes);
  if (plan.what == mishap::short_count) return move(1);
  errno = plan.what == mishap::interrupted ? EINTR : plan.error;
  return -1;
}

/// The same for a call that only succeeds or fails.
template <class Call>
int simple(Call call) {
  if (!struck() || plan.what == mishap::short_count) return call();
  errno = plan.what == mishap::interrupted ? EINTR : plan.error;
  return -1;
}

thread_local bool allocations_are_counted = false;
thread_local int allocations_left = 0;

}  // namespace

void failing_allocation::arm(int at) {
  allocations_left = at;
  allocations_are_counted = true;
}
bool failing_allocation::disarm() {
  allocations_are_counted = false;
  return allocations_left < 0;
}
void* operator new(std::size_t bytes) {
  if (allocations_are_counted && allocations_left-- == 0) throw std::bad_alloc();
  if (void* const at = std::malloc(bytes > 0 ? bytes : 1)) return at;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept {
  return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }

planned_mishap::planned_mishap(mishap what, int at, int error) {
  plan = {};
  plan.what = what;
  plan.left = at;
  plan.error = error;
  plan.armed = true;
}
planned_mishap::~planned_mishap() { plan.armed = false; }
bool planned_mishap::happened() const { return plan.happened; }

extern "C" ssize_t write(int file, void const* from, size_t bytes) {
  return transfer(bytes,
                  [&](size_t count) { return ssize_t(syscall(SYS_write, file, from, count)); });
}
extern "C" ssize_t pread(int file, void* to, size_t bytes, off_t at) {
  return transfer(bytes,
                  [&](size_t count) { return ssize_t(syscall(SYS_pread64, file, to, count, at)); });
}
extern "C" int fsync(int file) {
  return simple([&] { return int(syscall(SYS_fsync, file)); });
}
extern "C" int rename(char const* from, char const* to) noexcept {
  return simple([&] { return int(syscall(SYS_renameat, -100, from, -100, to)); });
}
