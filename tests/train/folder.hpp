// SPDX-License-Identifier: BSL-1.0
//
// What tests of files share: a folder that is gone at the end, whole files as strings, and the
// sentence of an error.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <unistd.h>

#include <pipe/base/error.hpp>

class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pipe-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  temporary_folder(temporary_folder const&) = delete;
  temporary_folder& operator=(temporary_folder const&) = delete;
  ~temporary_folder() { std::filesystem::remove_all(path_); }

  std::string file(std::string const& name) const { return (path_ / name).string(); }
  std::string write(std::string const& name, std::string const& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return file(name);
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (auto const& entry : std::filesystem::directory_iterator(path_))
      all.insert(entry.path().filename().string());
    return all;
  }

 private:
  std::filesystem::path path_;
};

inline std::string content(std::string const& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Whether two files have the same bytes, which no message shows.
inline bool same_content(std::string const& a, std::string const& b) {
  return content(a) == content(b);
}

/// What an Error says; what else happened otherwise.
template <class Error, class Work>
std::string sentence(Work work) {
  try {
    work();
  } catch (Error const& e) {
    return e.what();
  } catch (std::exception const& e) {
    return std::string("another type of error: ") + e.what();
  }
  return "no error";
}
