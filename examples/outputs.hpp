// SPDX-License-Identifier: BSL-1.0
//
// Places for what a job writes at its end: made and checked before it begins, so that hours of
// training do not end in a path that was wrong from the start.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/io/atomic_file.hpp>

/// Leaves what is at the paths as it is; empty ones are passed over.
///
/// throws: pp::file_error if one of them cannot be written
inline void require_writable(std::vector<std::string> const& paths) {
  for (std::string const& path : paths)
    if (!path.empty()) pp::files::atomic_file{path};
}

/// Makes a folder, and those it is in, unless it is there.
///
/// throws: pp::file_error
inline void make_folder(std::string const& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error)) return;
  std::filesystem::create_directories(path, error);
  if (error) throw pp::file_error("cannot make the folder '" + path + "': " + error.message());
}
