// SPDX-License-Identifier: BSL-1.0
//
// Blocks of a tensor in a file and the tensor's parts in memory, and copies from one to the other
// where there is no room for a whole tensor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <pipe/weights/named_parameter.hpp>
#include <pipe/weights/stored_type.hpp>

namespace pp::detail {

/// Consecutive numbers of a state in memory. With ZeRO a state has pieces in several processes, and
/// may have several pieces in one process.
template <class T>
struct state_piece {
  long begin = 0, count = 0;  ///< in the state, in the order of memory
  int process = 0;    ///< a process that has the piece; with replicas others may have it too
  T* here = nullptr;  ///< null if this process has no copy
};

/// Bytes of a block, unless a line of a state in its file has more.
inline constexpr long most_block_bytes = 256L << 10;

/// The count of numbers in a block of a state, which are consecutive in its file: whole lines, each
/// as long as a column, where the file stores the state transposed; otherwise any number.
template <class T>
long block_of(named_parameter<T> const& of) {
  constexpr long most = most_block_bytes / long(sizeof(T));
  long const line = of.transposed ? std::max<long>(of.rows, 1) : 1;
  return std::max(most / line, 1L) * line;
}
/// The count of all numbers of a state.
template <class T>
long size_of(named_parameter<T> const& of) {
  return long(of.rows) * of.columns;
}
/// The maximum count of numbers in a block of a state.
template <class T>
std::size_t most_of_block(named_parameter<T> const& of) {
  return std::size_t(std::min(block_of(of), size_of(of)));
}

/// Calls one(k, i) for the numbers that both a block of a file, [begin, begin + count), and a piece
/// have: number begin + k of the file, number i in the order of memory. The order depends on block
/// and piece alone.
///
/// needs: a block of whole lines: see block_of
template <class T, class One>
void for_each_common(named_parameter<T> const& of, long begin, long count,
                     state_piece<T> const& piece, One const& one) {
  long const first = piece.begin, end = piece.begin + piece.count;
  if (!of.transposed) {
    for (long i = std::max(begin, first), last = std::min(begin + count, end); i < last; ++i)
      one(i - begin, i);
    return;
  }
  long const rows = of.rows, columns = of.columns, column = begin / rows,
             last_column = column + count / rows;
  for (long r = first / columns; r < rows && r * columns < end; ++r) {
    long const place = long(of.place_of(std::size_t(r))), start = r * columns,
               from = std::max(column, first - start), to = std::min(last_column, end - start);
    for (long c = from; c < to; ++c) one((c - column) * rows + place, start + c);
  }
}

/// Copies a block of a file to the parts of a state that this process has.
template <class T>
void put_block(named_parameter<T> const& of, std::vector<state_piece<T>> const& pieces, long begin,
               std::span<T const> numbers) noexcept {
  for (state_piece<T> const& p : pieces)
    if (p.here != nullptr)
      for_each_common(of, begin, long(numbers.size()), p,
                      [&](long k, long i) { p.here[i - p.begin] = numbers[std::size_t(k)]; });
}

/// Copies a block of a file, of a real type, to the memory of a parameter that this process has
/// whole.
template <class T>
void copy_block_in(stored_type type, std::span<std::byte const> bytes, long begin,
                   named_parameter<T> const& to) noexcept {
  long const size = size_of(type), count = long(bytes.size()) / size;
  if (begin == 0 && count == size_of(to)) return copy_in(type, bytes.data(), to);
  with_reader_of(type, [&](auto number_at) {
    for_each_common(
        to, begin, count, state_piece<T>{0, size_of(to), 0, nullptr},
        [&](long k, long i) { to.values[std::size_t(i)] = T(number_at(bytes.data() + k * size)); });
  });
}

}  // namespace pp::detail
