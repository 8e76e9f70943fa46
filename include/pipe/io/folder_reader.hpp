// SPDX-License-Identifier: BSL-1.0
//
// The entries of a folder, and the files below it. The iterators of <filesystem> end the program
// where memory runs out: in libstdc++ they allocate in functions that are noexcept.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// An open folder, whose entries are read one by one, in the order of the system. Only the system
/// allocates memory, when it opens the folder.
class folder_reader {
 public:
  /// Opens a folder; "" is the current one.
  [[gnu::cold]] explicit folder_reader(std::string_view path);
  folder_reader(folder_reader const&) = delete;
  folder_reader& operator=(folder_reader const&) = delete;
  [[gnu::cold]] ~folder_reader();

  /// Its descriptor, for openat() and others. needs: an open folder
  int number() const { return ::dirfd(folder_); }
  /// The next entry but "." and "..", until the next call; nullptr at the end, and after a failure.
  [[gnu::cold]] dirent const* next();
  /// Whether an entry is a folder; a link to a folder is none.
  [[gnu::cold]] bool is_folder(dirent const& entry) const;
  /// The value of errno that says why the folder could not be opened, or not be read to its end; 0:
  /// there was no failure.
  int error() const { return error_; }

 private:
  DIR* folder_ = nullptr;
  int error_ = 0;
};

/// Whether programs put a file or folder of this name beside the data of a user: hidden names
/// (.git, .DS_Store, ._a.png, .ipynb_checkpoints), and names of archives, file managers and disks.
[[gnu::cold]] bool is_hidden(std::string_view name);

/// Which files are seen.
enum class files_seen : unsigned char { all, not_hidden };

/// Calls see(path) for each file below a folder, in any order, until see() returns true. Links
/// count as files, and are not followed. Folders that cannot be read are passed over.
///
/// returns: the value of errno that says why the first such folder could not be read; 0: all could
template <class See>
[[gnu::cold]] int see_files_below(std::string const& folder, files_seen which, See const& see) {
  int error = 0;
  std::vector<std::string> left{folder};
  while (!left.empty()) {
    std::string const path = std::exchange(left.back(), {});
    left.pop_back();
    folder_reader from(path);
    while (dirent const* const entry = from.next()) {
      if (which == files_seen::not_hidden && is_hidden(entry->d_name)) continue;
      std::string inner = path;
      if (!inner.empty() && inner.back() != '/') inner += '/';
      inner += entry->d_name;
      if (from.is_folder(*entry))
        left.push_back(std::move(inner));
      else if (see(inner))
        return error;
    }
    if (error == 0) error = from.error();
  }
  return error;
}

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/folder_reader.inl>
#endif
