// SPDX-License-Identifier: BSL-1.0
//
// The weights of a model as hubs keep them: a file model.safetensors, or several with an index.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <pipe/io/file_bytes.hpp>
#include <pipe/io/json_reader.hpp>
#include <pipe/train/safetensors_reader.hpp>

namespace models {

/// A tensor of one of several open files.
struct hub_tensor {
  pp::safetensors_reader const* file;
  pp::detail::safetensors_place const* place;
};

/// The open files of a model, and their tensors by name. Only headers are in memory.
class hub_files {
 public:
  /// path: a folder with model.safetensors or model.safetensors.index.json, or such a file.
  /// prefix: what names may begin with, and is left out.
  ///
  /// throws: pp::file_error, pp::data_error if a file is missing or is none, or two have a tensor
  ///         of one name
  explicit hub_files(std::filesystem::path const& path, std::string const& prefix = {})
      : path_(path.string()) {
    auto const paths = paths_of(path);
    files_.reserve(paths.size());
    for (std::string const& file : paths) files_.emplace_back(file);
    for (pp::safetensors_reader const& file : files_)
      for (auto const& place : file.tensors()) {
        std::string const name =
            place.name.starts_with(prefix) ? place.name.substr(prefix.size()) : place.name;
        if (!tensors_.emplace(name, hub_tensor{&file, &place}).second)
          throw pp::data_error("'" + path_ + "': the tensor '" + name + "' is there twice");
      }
  }

  std::string const& path() const { return path_; }
  std::map<std::string, hub_tensor> const& tensors() const { return tensors_; }

 private:
  static std::vector<std::string> paths_of(std::filesystem::path const& path) {
    if (path.extension() == ".json") return paths_in_index(path);
    if (!std::filesystem::is_directory(path)) return {path.string()};
    if (auto const one = path / "model.safetensors"; std::filesystem::exists(one))
      return {one.string()};
    if (auto const index = path / "model.safetensors.index.json"; std::filesystem::exists(index))
      return paths_in_index(index);
    throw pp::file_error("'" + path.string() +
                         "' has neither model.safetensors nor model.safetensors.index.json");
  }
  /// The files that an index names, which are beside it.
  static std::vector<std::string> paths_in_index(std::filesystem::path const& path) {
    std::string text = pp::detail::file_bytes(path.string());
    while (text.ends_with('\n')) text.pop_back();
    std::map<std::string, bool> names;
    pp::detail::json_reader r(text, "'" + path.string() + "'");
    r.object("an object", [&](std::string const& part) {
      if (part != "weight_map") return r.skip();
      r.object("an object of tensors and files", [&](std::string const&) {
        std::string const name = r.string("the name of a file");
        if (name != std::filesystem::path(name).filename())
          throw pp::data_error("'" + path.string() + "': '" + name + "' is not a file beside it");
        names[name] = true;
      });
    });
    r.end();
    if (names.empty()) throw pp::data_error("'" + path.string() + "' names no file");
    std::vector<std::string> paths;
    for (auto const& [name, is_there] : names)
      paths.push_back((path.parent_path() / name).string());
    return paths;
  }

  std::string path_;
  std::vector<pp::safetensors_reader> files_;
  std::map<std::string, hub_tensor> tensors_;
};

}  // namespace models
