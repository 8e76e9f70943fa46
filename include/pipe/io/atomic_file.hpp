// SPDX-License-Identifier: BSL-1.0
//
// Atomic replacement of a file: if the program or the machine fails while the file is written, its
// name still refers to the complete old contents or to the complete new contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/io/file_descriptor.hpp>

namespace pp {

namespace files {

/// A file that is written under a temporary name in the same folder, and renamed by commit().
/// Without commit() it is removed. The new file takes over the mode of the file that it replaces
/// and, where the system allows it, owner and group; if it replaces no file, it takes them over
/// from the file `like`.
///
/// law:    after commit() the bytes and the name are on disk; a program that is killed leaves at
///         most the temporary file, which the next writer of that name removes
/// throws: file_error with the name and the reason; the temporary file is then removed, and `path`
///         is unchanged, but for one case: see commit()
class atomic_file {
 public:
  /// Removes temporary files that killed programs have left for this name, then creates and locks
  /// one.
  ///
  /// throws: file_error if `path` is empty, or exists and is neither a regular file nor a symbolic
  ///         link
  [[gnu::cold]] explicit atomic_file(std::string path, std::string const& like = {});
  atomic_file(atomic_file const&) = delete;
  atomic_file& operator=(atomic_file const&) = delete;
  ~atomic_file() { remove(); }

  /// Appends bytes to the temporary file. The disk writes them while the program makes the next
  /// bytes, so that commit() has little to wait for. needs: no commit() before
  [[gnu::cold]] void write(std::span<std::byte const> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

  /// Gives the file its name and replaces the old one. A symbolic link is replaced, not its target.
  ///
  /// law: the bytes are on disk before the rename, the name after it
  /// throws: file_error; if only the sync of the folder fails, `path` has the new contents already
  [[gnu::cold]] void commit();

 private:
  /// Takes over mode, group and owner of an older file. If the group cannot be the same, the
  /// new file's group gets at most the rights of others.
  [[gnu::cold]] void take_over(struct stat const& old) const;

  /// Removes the temporary file and throws file_error with the reason that errno had before.
  [[noreturn, gnu::cold]] void fail(char const* what);
  /// Removes the temporary file, unless it has been renamed or removed already.
  [[gnu::cold]] void remove() noexcept;

  // temporary_ is empty once the file has been renamed or removed.
  std::string path_, temporary_;
  detail::file_descriptor file_;
  std::uint64_t written_ = 0,
                begun_ = 0;  // bytes in all, and bytes that the disk has begun to write
};

}  // namespace files

namespace detail {
using namespace files;
}  // namespace detail

}  // namespace pp
#ifdef PIPE_DEFINED
#include <pipe/io/atomic_file.inl>
#endif
