// SPDX-License-Identifier: BSL-1.0
//
// The states of a run on their way to a checkpoint: written to a file, or copied to memory, from
// which a file is written later.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <pipe/backend/host/kernels.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/together.hpp>
#include <pipe/checkpoint/checkpoint_file.hpp>
#include <pipe/checkpoint/checkpoint_parts.hpp>
#include <pipe/checkpoint/run_numbers.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/train/parts/trainer_processes.hpp>
#include <pipe/weights/file_blocks.hpp>
#include <pipe/weights/named_parameter.hpp>

namespace pp::detail {

/// Converts a state to its bytes in a file, bit for bit, and passes them to append(bytes) in blocks
/// that stay in the cache until they are written.
///
/// shape: values[rows, columns], in the order of memory; bytes: in the order of the file
/// cost:  a copy, bound by bytes
template <class T>
void store(named_parameter<T> const& of, T const* values, use_of_bytes append) {
  constexpr long numbers = (256L << 10) / long(sizeof(T)), cache_line = 64 / sizeof(T);
  // Lines of the file; a state that the file has in the order of memory is cut anywhere.
  long const rows = of.rows, columns = of.columns, length = of.transposed ? rows : 1,
             lines = of.transposed ? columns : rows * columns;
  long const most = std::max(numbers / std::max(length, 1L) / cache_line, 1L) * cache_line;
  row_list<T> block(std::size_t(std::min(most, lines) * length));
  for (long first = 0; first < lines; first += most) {
    long const count = std::min(most, lines - first);
    if (of.transposed && of.window() > 1)
      for (long k = 0; k < count; ++k)
        for (long i = 0; i < rows; ++i)
          block[std::size_t(k * rows) + of.place_of(std::size_t(i))] =
              values[i * columns + first + k];
    else if (of.transposed)
      host::portable::transpose<T>(values + first, rows, count, columns, block.data(), rows);
    else
      std::copy(values + first * length, values + (first + count) * length, block.begin());
    append(as_stored(std::span<T>(block.data(), std::size_t(count * length))));
  }
}

/// The tensors of a file: numbers of the run, then states.
template <class T>
[[gnu::cold]] row_list<safetensors_place> places_of(checkpoint_head const& head,
                                                    row_list<named_parameter<T>> const& states) {
  row_list<safetensors_place> places;
  for (run_numbers const& n : head.numbers) places.push_back(n.place());
  for (named_parameter<T> const& s : states)
    places.push_back({s.name, stored_type_of<T>(), s.shape});
  return places;
}

/// A checkpoint's file, to which states are written in order.
template <class T>
class tensor_file {
 public:
  [[gnu::cold]] tensor_file(checkpoint_target const& to, checkpoint_head const& head,
                            row_list<named_parameter<T>> const& states);
  [[gnu::cold]] ~tensor_file();
  [[gnu::cold]] void write(named_parameter<T> const& of, T const* values);
  /// Writes a state that comes in blocks: blocks(append) calls append(numbers), in the order of the
  /// file.
  template <class Blocks>
    requires(!std::is_convertible_v<Blocks, T const*>)
  [[gnu::cold]] void write(named_parameter<T> const&, Blocks const& blocks) {
    blocks([this](std::span<T> numbers) { to_.write(as_stored(numbers)); });
    to_.end_tensor();
  }
  /// Replaces the file of that name, and the parts that belonged to the old file.
  [[gnu::cold]] void commit();

 private:
  std::string path_;
  safetensors_metadata parts_;
  checkpoint_writer to_;
};

// Not inline, so that programs with pipe::compiled do not instantiate what these functions call.
template <class T>
tensor_file<T>::tensor_file(checkpoint_target const& to, checkpoint_head const& head,
                            row_list<named_parameter<T>> const& states)
    : path_(to.path), parts_(head.metadata),
      to_(to.path, places_of(head, states), head.metadata, to.like) {
  for (run_numbers const& n : head.numbers) {
    row_list<std::byte> const bytes = n.bytes();
    to_.write_tensor({bytes.data(), bytes.size()});
  }
}
template <class T>
tensor_file<T>::~tensor_file() {}
template <class T>
void tensor_file<T>::write(named_parameter<T> const& of, T const* values) {
  store(of, values, [this](std::span<std::byte const> bytes) { to_.write(bytes); });
  to_.end_tensor();
}
template <class T>
void tensor_file<T>::commit() {
  to_.commit();
  remove_parts(path_, parts_);
}

/// A checkpoint's file in memory, with the interface of tensor_file. States are in the order of
/// memory.
template <class T>
class tensor_copy {
 public:
  /// Takes memory for `bytes` bytes of states, unless the memory of the copy before suffices.
  ///
  /// throws: std::bad_alloc
  void reserve(std::size_t bytes) { values_.reserve(bytes / sizeof(T)); }
  [[gnu::cold]] tensor_copy& begin(checkpoint_head head, row_list<named_parameter<T>> states) {
    head_ = std::move(head);
    states_ = std::move(states);
    values_.clear();
    return *this;
  }
  [[gnu::cold]] void write(named_parameter<T> const& of, T const* values) {
    values_.append(values, std::size_t(of.rows) * std::size_t(of.columns));
  }
  /// Copies a state that comes in blocks: blocks(append) calls append(numbers).
  template <class Blocks>
    requires(!std::is_convertible_v<Blocks, T const*>)
  [[gnu::cold]] void write(named_parameter<T> const&, Blocks const& blocks) {
    blocks([&](std::span<T> numbers) { values_.append(numbers.data(), numbers.size()); });
  }
  void commit() {}
  /// Writes the file.
  ///
  /// throws: as checkpoint_writer
  [[gnu::cold]] void save(checkpoint_target const& target) const {
    tensor_file<T> to(target, head_, states_);
    T const* next = values_.data();
    for (named_parameter<T> const& of : states_) {
      to.write(of, next);
      next += of.rows * std::ptrdiff_t(of.columns);
    }
    to.commit();
  }

 private:
  checkpoint_head head_;
  row_list<named_parameter<T>> states_;
  row_list<T> values_;  // of all states
};

/// One process's record of a checkpoint in parts that is being saved.
struct part_saving {
  checkpoint_target to;  ///< the first file
  part_number part;      ///< the part of this process
  checkpoint_head head;  ///< the head of the first file
  long number = 0;       ///< the number of the saving

  /// The file of this process's part.
  [[gnu::cold]] checkpoint_target target() const;
  /// Writes the first file. needs: all parts are on disk
  ///
  /// throws: file_error; data_error if a part is not what its process has written
  [[gnu::cold]] void complete() const;
  /// Removes this process's part after a failure, unless the first file lists the part all the
  /// same.
  [[gnu::cold]] void remove() const;
};
/// The error that another process could not save its part; that process's error says why.
struct failed_elsewhere : file_error {
  using file_error::file_error;
};
/// Saves a part of a file in all processes, which all call this; of a copy in memory, without a
/// path.
///
/// throws: the exception of `work` here; failed_elsewhere if it has thrown in another process
template <class Processes>
[[gnu::cold]] void save_in_all(Processes const& all, std::string_view path,
                               function_ref<void()> work) {
  if constexpr (are_one<Processes>) return work();
  bool const is_copy = path.empty();
  together<failed_elsewhere>(all,
                             is_copy ? "another process could not save a copy in memory"
                                     : "another process could not save",
                             path, work);
}

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/checkpoint/checkpoint_tensors.inl>
#endif
#if defined(PIPE_COMPILED) && !defined(__CUDACC__)
namespace pp::detail {

PIPE_COMPILED template class tensor_file<float>;

}  // namespace pp::detail
#endif
