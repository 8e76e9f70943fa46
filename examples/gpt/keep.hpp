// SPDX-License-Identifier: BSL-1.0
//
// The keeping of trained weights, which find another place where they cannot be saved.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include <pipe/base/error.hpp>
#include <pipe/train/weights.hpp>

#include "gpt.hpp"

/// `path`, or with a number: the first that nothing has.
inline std::filesystem::path free_name(std::filesystem::path const& path) {
  std::filesystem::path name = path;
  std::error_code error;
  for (long number = 2; std::filesystem::exists(std::filesystem::symlink_status(name, error));
       ++number)
    name = path.parent_path() /
           (path.stem().string() + "-" + std::to_string(number) + path.extension().string());
  return name;
}

/// Saves the weights; where that fails, under a free name beside the file, in the current folder or
/// in that for temporary files, with a warning that says where they are.
///
/// throws: what the first try threw, if they cannot be saved anywhere
template <class Trainer>
void save_somewhere(Trainer& trainer, std::filesystem::path const& path) {
  try {
    pp::save_weights(trainer, path.string());
    return;
  } catch (pp::error const& e) {
    std::error_code error;
    for (std::filesystem::path const& folder : {path.parent_path(), std::filesystem::path(),
                                                std::filesystem::temp_directory_path(error)}) {
      std::filesystem::path const other = free_name(folder / path.filename());
      try {
        pp::save_weights(trainer, other.string());
      } catch (pp::file_error const&) {
        continue;
      }
      return warn(std::string(e.what()) + "; the weights are in '" +
                  std::filesystem::absolute(other).string() + "'");
    }
    throw;
  }
}
