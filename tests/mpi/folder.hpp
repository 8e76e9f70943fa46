// SPDX-License-Identifier: BSL-1.0
//
// Files of tests over processes.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "mpi/between.hpp"

namespace processes {

/// The path of a file in a folder that all processes know.
inline std::string in_folder(char const* name) {
  auto const folder = std::filesystem::temp_directory_path() / folder_of_tests;
  std::filesystem::create_directories(folder);
  return (folder / (name + std::to_string(Between::processes()))).string();
}
inline std::string bytes_of(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace processes
