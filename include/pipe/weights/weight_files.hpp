// SPDX-License-Identifier: BSL-1.0
//
// The weights of a model as hubs keep them: one file, or several files and an index, which names
// the file of each tensor. Only headers are in memory.
//
//     {"metadata": {...}, "weight_map": {"0.weight": "model-00001-of-00002.safetensors", ...}}
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/io/sorted.hpp>
#include <pipe/weights/safetensors_reader.hpp>
#include <pipe/weights/text_map.hpp>

namespace pp {

namespace detail {

/// A tensor of one of several files.
struct placed_tensor : safetensors_place {
  static constexpr bool moves_by_bytes = true;

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
  [[gnu::cold]] explicit weight_files(std::string path);

  std::string const& name() const { return name_; }
  /// All tensors, in the order of files, and of bytes within a file.
  detail::row_list<detail::placed_tensor> const& tensors() const { return tensors_; }
  /// Whether there is a tensor of a name.
  bool has(std::string_view tensor) const { return names_.find(tensor) >= 0; }
  /// Fills `to` with bytes of one of the tensors, from number `from` on. needs: the tensor has that
  /// many numbers
  ///
  /// throws: file_error if reading fails, data_error if the file was shortened
  [[gnu::cold]] void read(detail::placed_tensor const& tensor, std::span<std::byte> to,
                          std::uint64_t from = 0) const;

 private:
  /// The path of a file in a folder; "" is the current one.
  [[gnu::cold]] static std::string in(std::string const& folder, std::string const& file);
  /// The file or the index in a folder.
  [[gnu::cold]] std::string file_in(std::string const& folder) const;

  /// Opens the files that an index names, in the folder of the index.
  [[gnu::cold]] void open_index(std::string const& index);

  /// Opens files. index: by tensor the file that an index names, which decides where several files
  /// have a tensor of that name
  [[gnu::cold]] void open(detail::row_list<detail::kept_text> const& paths,
                          detail::text_map const& index = {});

  std::string name_;
  detail::row_list<detail::owner<safetensors_reader>> files_;
  detail::row_list<detail::placed_tensor> tensors_;
  detail::name_index names_;  // of tensors_
};

}  // namespace pp
#ifdef PIPE_DEFINED
#include <pipe/weights/weight_files.inl>
#endif
