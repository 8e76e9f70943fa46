// SPDX-License-Identifier: BSL-1.0
//
// A counter of completed calls that a process shares with its launcher, which sees by it whether
// the process makes progress. It costs a store to memory in a call, and nothing where there is no
// such launcher.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>
#include <sys/stat.h>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// The memory of the counter, of which a file descriptor is inherited.
///
/// law: beats only grows, and is 0 until the process has completed a call
struct heartbeat_memory {
  static constexpr std::uint64_t first_word = 0x7472616562657069;  // "ipebeart": no other file
  std::uint64_t word = first_word;
  std::atomic<std::uint64_t> beats{0};
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  /// The memory behind a descriptor; null if it is another file, or none.
  [[gnu::cold]] static heartbeat_memory* behind(int descriptor) {
    struct stat file{};
    if (fstat(descriptor, &file) != 0 || file.st_size != sizeof(heartbeat_memory)) return nullptr;
    void* const at =
        mmap(nullptr, sizeof(heartbeat_memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED) return nullptr;
    auto* const memory = static_cast<heartbeat_memory*>(at);
    if (memory->word == first_word) return memory;
    munmap(at, sizeof(heartbeat_memory));
    return nullptr;
  }
};

/// The variable with the descriptor's number.
inline constexpr char const* heartbeat_variable = "PIPE_HEARTBEAT";

/// Tells the launcher, if it listens, that a call is complete. For any thread.
inline void beat() {
  static heartbeat_memory* const memory = [] {
    char const* const text = std::getenv(heartbeat_variable);
    return text == nullptr ? nullptr : heartbeat_memory::behind(std::atoi(text));
  }();
  if (memory != nullptr) memory->beats.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace pp::detail
