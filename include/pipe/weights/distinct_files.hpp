// SPDX-License-Identifier: BSL-1.0
//
// The check that a program's input and output files are distinct, even under different names. Made
// before the first file is opened, so that no output overwrites an input.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <sys/stat.h>

#include <pipe/base/error.hpp>
#include <pipe/io/folder_reader.hpp>

namespace pp {

namespace detail {

/// The target of a path with all symbolic links resolved, even if it does not exist yet.
inline std::filesystem::path where_it_leads(std::filesystem::path path) {
  namespace fs = std::filesystem;
  std::error_code error;
  // Link by link, because weakly_canonical resolves no link to a missing file. The limit ends
  // cycles.
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    fs::path const to = fs::read_symlink(path, error);
    if (error) break;
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  fs::path const absolute = fs::absolute(path, error);
  fs::path const canonical = fs::weakly_canonical(absolute, error);
  fs::path const found = error ? absolute.lexically_normal() : canonical;
  // Without a trailing slash, so that "a/" and "a" are equal.
  return found.has_filename() ? found : found.parent_path();
}

/// Whether two paths lead to the same file or folder: by device and inode, which covers symbolic
/// and hard links, or by resolved path if neither exists.
inline bool same_file(std::filesystem::path const& a, std::filesystem::path const& b) {
  struct stat first{}, second{};
  bool const has_first = ::stat(a.c_str(), &first) == 0,
             has_second = ::stat(b.c_str(), &second) == 0;
  if (has_first && has_second)
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  return !has_first && !has_second && where_it_leads(a) == where_it_leads(b);
}

/// Whether a file is in a folder or below it, would be created there, or is a hard link to a file
/// there.
inline bool is_in_folder(std::filesystem::path const& file, std::filesystem::path const& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  for (fs::path at = where_it_leads(file).parent_path();; at = at.parent_path()) {
    if (same_file(at, folder)) return true;
    if (at == at.parent_path()) break;
  }
  struct stat wanted{}, found{};
  if (::stat(file.c_str(), &wanted) != 0) return false;
  // The file may be a hard link to a file of the folder: all files there are compared by inode.
  bool is_there = false;
  see_files_below(folder.string(), files_seen::all, [&](std::string const& path) {
    return is_there = ::stat(path.c_str(), &found) == 0 && found.st_dev == wanted.st_dev &&
                      found.st_ino == wanted.st_ino;
  });
  return is_there;
}

}  // namespace detail

namespace files {

/// A file or folder argument of a program, and the option that names it. An empty path: not given.
struct file_use {
  std::string option, path;
  enum class way : unsigned char {
    read,     ///< a file, or a folder with all that is in it
    written,  ///< a file, overwritten
    added_to  ///< a folder in which files with new names are created
  } how = way::read;
};

/// Throws data_error if a written file is the same as another file of the list, or is in a folder
/// that is read. Devices and pipes may be shared.
inline void require_distinct(std::vector<file_use> const& uses) {
  using way = file_use::way;
  // Whether a path exists and is neither a file nor a folder.
  auto const is_shared = [](std::string const& path) {
    struct stat about{};
    return ::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
  };
  auto const text = [](file_use const& u) { return u.option + " '" + u.path + "'"; };
  for (file_use const& a : uses)
    for (file_use const& b : uses) {
      if (&a == &b || a.how == way::read || a.path.empty() || b.path.empty() || is_shared(a.path))
        continue;
      if (detail::same_file(a.path, b.path)) {
        if (a.how == way::added_to && b.how == way::added_to) continue;
        throw data_error(text(a) + " would write over " + text(b) + ": they are the same");
      }
      if (b.how == way::read && detail::is_in_folder(a.path, b.path))
        throw data_error(text(a) + " would write into the folder that is read, " + text(b));
    }
}

}  // namespace files

namespace detail {
using namespace files;
}  // namespace detail

}  // namespace pp
