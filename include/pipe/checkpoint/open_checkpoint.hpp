// SPDX-License-Identifier: BSL-1.0
//
// A checkpoint that is open for reading, of one file or of several files: in both cases a table of
// tensors. A tensor that processes divide has pieces in several parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/checkpoint/checkpoint_file.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/io/sorted.hpp>
#include <pipe/weights/safetensors_reader.hpp>

namespace pp::detail {

/// A checkpoint whose headers are sound, and whose parts were saved together. Tensors are checked
/// when they are read.
///
/// cost:   memory for the headers, and an open file for each part
/// throws: file_error if a file cannot be read; data_error if the file is no checkpoint, is
///         damaged, or a part is another file
class open_checkpoint {
 public:
  [[gnu::cold]] explicit open_checkpoint(std::string const& path);
  [[gnu::cold]] ~open_checkpoint();

  /// The number of tensors; tensor i, which has the shape [numbers] if it is divided.
  std::size_t size() const { return tensors_.size(); }
  safetensors_place const& operator[](std::size_t i) const { return tensors_[i].place; }
  /// Whether a tensor has pieces. Its bytes are then the state's numbers in the order of memory,
  /// otherwise in the order of files.
  bool is_divided(std::size_t i) const { return tensors_[i].is_divided; }
  /// The number of the tensor of a name, or -1 if there is none.
  long find(std::string_view name) const;
  kept_text const* metadata(std::string_view name) const { return files_[0]->metadata(name); }
  std::string const& name() const { return files_[0]->name(); }
  [[noreturn]] void refuse(text_parts why) const { files_[0]->refuse(why); }

  /// The bytes of a tensor.
  ///
  /// throws: data_error if the bytes are not those that were written; file_error without memory
  [[gnu::cold]] owner<std::byte, delete_memory> bytes_of(std::size_t i) const;

  /// Reads a tensor block by block: see checkpoint_reader::read.
  [[gnu::cold]] void read(std::size_t i, std::span<std::byte> room,
                          function_ref<void(std::span<std::byte const>)> use) const;

 private:
  /// A tensor of a file, with the numbers of a state from `begin` on.
  struct tensor_piece {
    std::size_t file = 0, tensor = 0;
    long begin = 0;
  };
  /// A tensor of a file with the name of a state, and the number of the state.
  struct listed_piece {
    tensor_piece at;
    bool is_piece = false;
    long tensor = -1;
  };
  struct tensor {
    static constexpr bool moves_by_bytes = true;

    safetensors_place place;
    row_list<tensor_piece> pieces;
    bool is_divided = false;
    std::uint64_t bytes = 0;
  };

  [[gnu::cold]] void add_file(std::string const& path);
  [[gnu::cold]] std::size_t bytes_in(tensor_piece const& p) const;
  /// Opens the parts that tensor i of the first file lists.
  [[gnu::cold]] void open_parts(std::size_t i);
  /// Adds a tensor of a part: a state, or a piece of a state.
  [[gnu::cold]] void add_of_part(std::size_t file, std::size_t i);
  [[gnu::cold]] void add(std::string_view name, tensor_piece const& p, bool is_piece);
  /// Enters a listed tensor in the table, or a piece in its tensor.
  [[gnu::cold]] void enter(std::size_t i);
  /// Orders the pieces of a tensor.
  ///
  /// throws: data_error unless they follow each other
  [[gnu::cold]] void join(tensor& t) const;

  row_list<owner<checkpoint_reader>> files_;  // the first, then the parts
  row_list<tensor> tensors_;
  name_index names_;  // of listed_, in files_
  row_list<listed_piece> listed_;
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/checkpoint/open_checkpoint.inl>
#endif
