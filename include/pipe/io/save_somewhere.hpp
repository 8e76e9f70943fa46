// SPDX-License-Identifier: BSL-1.0
//
// Files that must not be lost: if one cannot be written where it should be, it is written to
// another place.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/io/numbered_name.hpp>

namespace pp {

namespace files {

/// The first name that no file has: `path`, or with -2, -3 ... before its ending.
inline std::string free_name(std::filesystem::path const& path) {
  std::string name = path.string();
  std::error_code error;
  for (long number = 2; std::filesystem::exists(std::filesystem::symlink_status(name, error));
       ++number)
    name = detail::numbered_name(path.string(), number);
  return name;
}

}  // namespace files

namespace detail {

using namespace files;

/// The sentence of a file that could not be written for want of memory.
inline std::string no_memory_to_write(std::string const& path) {
  return "no memory to write '" + path + "'";
}
/// The sentence that says why a file could not be written.
inline std::string sentence_of(std::exception_ptr const& failure, std::string const& path) try {
  std::rethrow_exception(failure);
} catch (std::bad_alloc const&) {
  return no_memory_to_write(path);
} catch (std::exception const& e) {
  return e.what();
}

}  // namespace detail

namespace files {

/// The place of a file, and why the file is not where it should be.
struct saved_place {
  std::string path;      ///< "": nowhere
  std::string failures;  ///< a sentence for each place that was tried before, or ""
};

/// Saves a file under the first of the paths for which save(path) throws no pp::file_error.
template <class Save>
saved_place save_somewhere(std::vector<std::string> const& paths, Save const& save) {
  saved_place place;
  for (std::string const& path : paths) try {
      save(path);
      place.path = path;
      break;
    } catch (file_error const& e) {
      (place.failures += place.failures.empty() ? "" : "; ") += e.what();
    }
  return place;
}

/// Saves a file under `path`; if that fails, under a free name beside it, in the current folder or
/// in the folder for temporary files.
template <class Save>
saved_place save_somewhere(std::string const& path, Save const& save) {
  std::filesystem::path const file(path), name = file.filename();
  std::error_code error;
  return save_somewhere(
      std::vector<std::string>{path, free_name(file), free_name(name),
                               free_name(std::filesystem::temp_directory_path(error) / name)},
      save);
}

}  // namespace files

}  // namespace pp
