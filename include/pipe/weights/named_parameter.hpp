// SPDX-License-Identifier: BSL-1.0
//
// A parameter as in weight files: its name, its shape in files, and its numbers in a file's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/together.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/extents.hpp>
#include <pipe/weights/safetensors_header.hpp>

namespace pp::detail {

/// A view of a parameter, with its name and shape in files.
///
/// shape: values[rows, columns], row-major; in the file [columns, rows] if transposed, as PyTorch
///        stores [outputs, inputs]. The rows of a convolution are (window, channels), in the file
///        [filters, channels, window]
/// law:   the product of `shape` is rows * columns == values.size()
template <class T>
struct named_parameter {
  static constexpr bool moves_by_bytes = true;
  using value_type = T;

  kept_text name;
  extents shape;  ///< in the file
  bool transposed = false;
  int rows = 0, columns = 0;
  std::span<T> values;
  bool elsewhere = false;  ///< in another process: there are no values here
  bool in_parts = false;   ///< replicas divide it: see list_of
  int index = 0;           ///< number in the model's graph, of a trainer's parameter

  /// The positions of a transposed tensor's window: 1 for a matrix.
  std::size_t window() const {
    std::size_t n = 1;
    for (std::size_t i = 2; i < shape.size(); ++i) n *= std::size_t(shape[i]);
    return n;
  }
  /// The place in a column of the file of the number in row `row`. needs: transposed
  std::size_t place_of(std::size_t row) const {
    std::size_t const taps = window(), channels = std::size_t(rows) / taps;
    return row % channels * taps + row / channels;
  }
  /// The number in memory of number `at` of the file.
  std::size_t number_at(std::size_t at) const {
    if (!transposed) return at;
    std::size_t const taps = window(), all = std::size_t(rows), place = at % all;
    return (place % taps * (all / taps) + place / taps) * std::size_t(columns) + at / all;
  }
};

/// The number type of a list of parameters.
template <class List>
using element_of = typename List::value_type::value_type;

/// A Pipeline, or any other type with named parameters and file shapes.
template <class Trainer>
concept has_named_parameters = requires(Trainer& trainer) {
  std::string(trainer.parameters().front().name);
  std::vector<long>(trainer.parameters().front().file_shape);
  bool(trainer.parameters().front().stored_transposed);
  trainer.parameters().front().values;
  trainer.parameters_changed();
};

/// A trainer whose ranks may be in several processes.
template <class Trainer>
concept has_processes = requires(Trainer& trainer) { bool(trainer.processes().agree(true)); };

/// The only process of a program, with the functions of a trainer's several ones.
struct only_process {
  static constexpr bool are_one = true;
  bool agree(bool here) const { return here; }
  bool writes_files() const { return true; }
  /// The values of a parameter, which are all here.
  template <class View, class T>
  [[gnu::cold]] auto values_of(View const& view, std::vector<T>&) const {
    return view.values;
  }
};
/// The processes of a trainer, which is in a call as long as the result exists.
template <class Trainer>
[[gnu::cold]] auto processes_of(Trainer& trainer) {
  if constexpr (has_processes<Trainer>)
    return trainer.processes();
  else
    return only_process();
}
/// The agreement of a trainer's processes on work that makes calls of the trainer: see
/// base/together.hpp.
template <class Trainer>
struct agreement {
  static constexpr bool are_one = detail::are_one<decltype(processes_of(std::declval<Trainer&>()))>;
  Trainer& trainer;
  bool agree(bool here) const { return processes_of(trainer).agree(here); }
};
template <class Trainer>
[[gnu::cold]] agreement<Trainer> agreement_of(Trainer& trainer) {
  return {trainer};
}

/// A trainer that brings parameters together one by one, where replicas divide them (ZeRO<3>).
template <class Trainer>
concept lists_parameters = requires(Trainer& trainer) { trainer.processes().list(); };

/// Views of a trainer's parameters in the order of parameters(). The spans of parameters that
/// replicas divide are empty: values_in_all() returns their values, set_values() sets them.
template <class Trainer>
[[gnu::cold]] auto list_of(Trainer& trainer) {
  if constexpr (lists_parameters<Trainer>)
    return trainer.processes().list();
  else
    return trainer.parameters();
}
/// Whether this process has a listed parameter, or the parts of the parameter that belong to its
/// replica.
template <class Trainer, class View>
bool is_here(Trainer& trainer, View const& view) {
  if constexpr (lists_parameters<Trainer>) return trainer.processes().has(view.index);
  return !view.values.empty();
}
/// A trainer's parameters, in the order of parameters(), with names and shapes in files.
template <has_named_parameters Trainer>
[[gnu::cold]] auto named_parameters(Trainer& trainer) {
  using element = typename decltype(trainer.parameters().front().values)::element_type;
  if constexpr (requires { trainer.processes().template named<named_parameter<element>>(); }) {
    return trainer.processes().template named<named_parameter<element>>();
  } else {
    auto const views = list_of(trainer);
    row_list<named_parameter<element>> all;
    for (auto const& p : views) {
      bool const is_empty = has_processes<Trainer> && p.values.empty();
      bool const in_parts = is_empty && is_here(trainer, p);
      all.push_back({std::string_view(p.name), p.file_shape, bool(p.stored_transposed), p.rows,
                     p.columns, p.values, is_empty && !in_parts, in_parts});
      if constexpr (requires { p.index; }) all.back().index = p.index;
    }
    return all;
  }
}
/// The values of a listed parameter, in every process, all of which call this function. If replicas
/// divide the parameter, the values stay until the next call; values of another process are
/// received into `room`.
template <class Trainer, class View, class T>
[[gnu::cold]] auto values_in_all(Trainer& trainer, View const& view, std::vector<T>& room) {
  return processes_of(trainer).values_of(view, room);
}
/// Sets the values of a listed parameter that this process has: fill(span) writes all of them.
template <class Trainer, class View, class Fill>
[[gnu::cold]] void set_values(Trainer& trainer, [[maybe_unused]] View const& view,
                              Fill const& fill) {
  if constexpr (lists_parameters<Trainer>)
    trainer.processes().set(view.index, fill);
  else
    fill(view.values);
}
/// Calls use(span) for the parts of a listed parameter that this process has.
template <class Trainer, class View, class Use>
[[gnu::cold]] void for_each_part(Trainer& trainer, View const& view, Use const& use) {
  if constexpr (lists_parameters<Trainer>)
    trainer.processes().for_each_part(view.index, use);
  else
    use(view.values);
}

/// Throws error for a parameter that violates the law of named_parameter and could not be copied
/// safely.
template <class T>
[[gnu::cold]] void require_law(named_parameter<T> const& p) {
  std::uint64_t bytes = 0;
  std::size_t const numbers = std::size_t(p.rows) * std::size_t(p.columns);
  bool const counted =
      count_bytes(stored_type_of<T>(), p.shape, bytes) && bytes == numbers * sizeof(T);
  bool const has_values = numbers == p.values.size() || p.elsewhere || p.in_parts;
  if (!counted || p.rows < 0 || p.columns < 0 || !has_values)
    throw_error<error>({"parameter ", quotation(p.name), ": ", p.rows, " x ", p.columns,
                        " and shape ", text_of_shape(p.shape), " must both be its ",
                        p.values.size(), " numbers"});
}

/// Calls one(run, first, stride) for each run of `length` numbers that are consecutive in a file,
/// in the file's order: in memory these are the numbers first, first + stride, ...
template <class T, class One>
void for_each_run(named_parameter<T> const& p, One one) {
  std::size_t const rows = std::size_t(p.rows), columns = std::size_t(p.columns);
  std::size_t const taps = p.transposed ? p.window() : 1;
  if (taps > 1)
    for (std::size_t at = 0; at < rows * columns; at += taps)
      one(at, p.number_at(at), rows / taps * columns, taps);
  else if (p.transposed)
    for (std::size_t c = 0; c < columns; ++c) one(c * rows, c, columns, rows);
  else
    for (std::size_t r = 0; r < rows; ++r) one(r * columns, r * columns, std::size_t(1), columns);
}

/// Calls one(at, i) for each number, which is number `at` of the file and number i in memory, in
/// any order: transposed parameters tile by tile, so that a tile's numbers stay in the cache.
template <class T, class One>
void for_all_numbers(named_parameter<T> const& p, One one) {
  std::size_t const rows = std::size_t(p.rows), columns = std::size_t(p.columns);
  constexpr std::size_t tile = 16;
  std::size_t const taps = p.transposed ? p.window() : 1;
  if (taps > 1)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0, place = p.place_of(i); k < columns; ++k)
        one(k * rows + place, i * columns + k);
  else if (!p.transposed)
    for (std::size_t i = 0; i < rows * columns; ++i) one(i, i);
  else
    for (std::size_t r = 0; r < rows; r += tile)
      for (std::size_t c = 0; c < columns; c += tile)
        for (std::size_t k = c; k < columns && k < c + tile; ++k)
          for (std::size_t i = r; i < rows && i < r + tile; ++i) one(k * rows + i, i * columns + k);
}

}  // namespace pp::detail
#if defined(PIPE_COMPILED) && !defined(__CUDACC__)
namespace pp::detail {

PIPE_COMPILED template decltype(require_law<float>) require_law<float>;

}  // namespace pp::detail
#endif
