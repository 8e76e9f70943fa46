// SPDX-License-Identifier: BSL-1.0
//
// The weights of a model as hubs keep them: one file, or several files and an index, which names
// the file of each tensor. Only headers are in memory.
//
//     {"metadata": {...}, "weight_map": {"0.weight": "model-00001-of-00002.safetensors", ...}}
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/io/file_bytes.hpp>
#include <pipe/io/json_reader.hpp>
#include <pipe/weights/safetensors_reader.hpp>

namespace pp {

namespace detail {

/// A tensor of one of several files.
struct placed_tensor : safetensors_place {
  std::size_t file = 0;
};

}  // namespace detail

/// Open files of weights, and all their tensors.
class weight_files {
 public:
  /// path: a safetensors file, its index, or a folder with model.safetensors or
  /// model.safetensors.index.json.
  ///
  /// throws: file_error if a file is missing or cannot be read; data_error if a file violates its
  ///         format, if two files have a tensor of one name and the index names neither of them, or
  ///         if the index names a file in another folder, no file at all, or a tensor that its file
  ///         does not have
  [[gnu::cold]] explicit weight_files(std::string path) : name_(std::move(path)) {
    std::string at = name_;
    struct stat there{};  // opening the file reports what cannot be read
    if (::stat(at.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) at = file_in(at);
    if (at.ends_with(".json") && !at.ends_with("/.json") && at != ".json")
      open_index(at);
    else
      open({at});
  }

  std::string const& name() const { return name_; }
  /// All tensors, in the order of files, and of bytes within a file.
  std::vector<detail::placed_tensor> const& tensors() const { return tensors_; }
  /// Whether there is a tensor of a name.
  bool has(std::string_view tensor) const { return file_of_.contains(tensor); }
  /// Fills `to` with bytes of one of the tensors, from number `from` on. needs: the tensor has that
  /// many numbers
  ///
  /// throws: file_error if reading fails, data_error if the file was shortened
  [[gnu::cold]] void read(detail::placed_tensor const& tensor, std::span<std::byte> to,
                          std::uint64_t from = 0) const {
    files_[tensor.file].read(tensor.begin + from, to);
  }

 private:
  /// The path of a file in a folder; "" is the current one.
  [[gnu::cold]] static std::string in(std::string const& folder, std::string const& file) {
    return folder.empty() || folder.back() == '/' ? folder + file
                                                  : detail::joined_text({folder, "/", file});
  }
  /// The file or the index in a folder.
  [[gnu::cold]] std::string file_in(std::string const& folder) const {
    constexpr char one[] = "model.safetensors", index[] = "model.safetensors.index.json";
    struct stat there{};
    for (char const* const name : {one, index})
      if (std::string path = in(folder, name); ::stat(path.c_str(), &there) == 0) return path;
    detail::throw_error<file_error>({"'", name_, "' has neither ", one, " nor ", index});
  }

  /// Opens the files that an index names, in the folder of the index.
  [[gnu::cold]] void open_index(std::string const& index) {
    std::string const about = detail::joined_text({"'", index, "'"});
    std::string const text = detail::file_bytes(index);
    std::map<std::string, std::string> files;  // by tensor
    detail::json_reader r(text, about);
    r.object("an object", [&](std::string const& part) {
      if (part != "weight_map") return r.skip();
      r.object("an object of tensors and files", [&](std::string const& tensor) {
        std::string const file = r.string("the name of a file");
        if (file.find('/') != file.npos)
          detail::throw_error<data_error>(
              {about, ": ", detail::quotation(file), " is not a file beside it"});
        files[tensor] = file;
      });
    });
    r.end();
    if (files.empty()) detail::throw_error<data_error>({about, " names no file"});
    std::string const folder = index.substr(0, index.rfind('/') + 1);
    std::vector<std::string> paths;  // each once, in order
    for (auto& [tensor, file] : files) {
      file = in(folder, file);
      auto at = paths.begin();
      while (at != paths.end() && *at < file) ++at;
      if (at == paths.end() || *at != file) paths.insert(at, file);
    }
    open(paths, files);
    for (auto const& [tensor, file] : files) {
      if (!file_of_.contains(tensor))
        detail::throw_error<data_error>(
            {about, ": tensor ", detail::quotation(tensor), " is not in '", file, "'"});
    }
  }

  /// Opens files. index: by tensor the file that an index names, which decides where several files
  /// have a tensor of that name
  [[gnu::cold]] void open(std::vector<std::string> const& paths,
                          std::map<std::string, std::string> const& index = {}) {
    files_.reserve(paths.size());
    for (std::string const& path : paths) {
      for (detail::safetensors_place const& place : files_.emplace_back(path).tensors()) {
        std::size_t const file = files_.size() - 1;
        if (auto const named = index.find(place.name);
            named != index.end() && named->second != path)
          continue;
        auto const [before, is_first] = file_of_.emplace(place.name, file);
        if (!is_first)
          detail::throw_error<data_error>({"tensor ", detail::quotation(place.name), " is in '",
                                           files_[before->second].name(), "' and in '", path, "'"});
        tensors_.push_back({place, file});
      }
    }
  }

  std::string name_;
  std::vector<safetensors_reader> files_;
  std::vector<detail::placed_tensor> tensors_;
  detail::name_index file_of_;  // names in files_
};

}  // namespace pp
