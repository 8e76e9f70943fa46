// SPDX-License-Identifier: BSL-1.0
//
// Temporary files next to their final file: their names, and the detection of those that killed
// programs have left.
//
//     NAME.tmp-HOST-PROCESS-NUMBER    HOST: a hash of the machine's name; a long NAME is cut
//
// A program holds a lock (flock) on its temporary file until it is done; the system releases the
// lock when the program ends, however it ends. Process numbers alone would not do: they are reused,
// and two machines have the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/io/folder_reader.hpp>
#include <pipe/io/kept_text.hpp>

namespace pp::detail {

constexpr std::uint64_t hash_of(std::string_view text) {
  fnv_hash hash;
  for (char const c : text) hash.add(static_cast<unsigned char>(c));
  return hash.value;
}

/// The folder of a file: "", or with a slash at the end.
[[gnu::cold]] std::string_view folder_of(std::string_view path);
/// The name of a file without its folder.
[[gnu::cold]] std::string_view name_in_folder(std::string_view path);
/// 16 hexadecimal digits.
struct hexadecimal {
  char digits[17];
  explicit hexadecimal(std::uint64_t hash) {
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  }
};

/// The names of the temporary files for a final file, from this machine and this process.
class temporary_names {
 public:
  [[gnu::cold]] explicit temporary_names(std::string_view path);
  std::string_view folder() const { return start_.view().substr(0, folder_size_); }
  /// The name, cut if it is long, with ".tmp-".
  std::string_view stem() const { return start_.view().substr(folder_size_); }
  /// 8 hexadecimal digits.
  std::string_view host() const { return {host_, sizeof host_}; }
  /// The path of one temporary file: a process may have several for one final file.
  [[gnu::cold]] std::string path(int number) const;

 private:
  kept_text start_;  // folder and stem
  std::size_t folder_size_;
  char host_[8];
};

/// Locks an open file. False if another program, or another object of this one, holds the lock, or
/// if the file has been unlinked meanwhile. True if the file system has no locks.
[[gnu::cold]] bool lock_temporary(file_descriptor const& file);

/// Removes temporary files of that name whose lock is free: at once if they are from this machine,
/// otherwise when they were not written to for a day (some network file systems keep locks per
/// machine). Where the file system has no locks nothing is removed. Failures are ignored: leftover
/// files only take space.
[[gnu::cold]] void remove_stale_files(temporary_names const& names) noexcept;

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/temporary_file.inl>
#endif
