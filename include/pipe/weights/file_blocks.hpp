// SPDX-License-Identifier: BSL-1.0
//
// Blocks of a tensor in a file and the tensor's parts in memory, and copies from one to the other
// where there is no room for a whole tensor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/io/row_list.hpp>
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

/// Copies the numbers of a piece that this process has to a block of a file.
template <class T>
PIPE_ONE_COPY void get_block(named_parameter<T> const& of, state_piece<T> const& piece, long begin,
                             std::span<T> numbers) noexcept {
  for_each_common(of, begin, long(numbers.size()), piece,
                  [&](long k, long i) { numbers[std::size_t(k)] = piece.here[i - piece.begin]; });
}
/// Copies a block of a file to the parts of a state that this process has.
template <class T>
PIPE_ONE_COPY void put_block(named_parameter<T> const& of, row_list<state_piece<T>> const& pieces,
                             long begin, std::span<T const> numbers) noexcept {
  for (state_piece<T> const& p : pieces)
    if (p.here != nullptr)
      for_each_common(of, begin, long(numbers.size()), p,
                      [&](long k, long i) { p.here[i - p.begin] = numbers[std::size_t(k)]; });
}

/// Copies a block of a file, of a real type, to the memory of a parameter that this process has
/// whole: transposed parameters tile by tile, so that a tile's numbers stay in the cache.
///
/// needs: a block of whole lines: see block_of
template <class T>
void copy_block_in(stored_type type, std::span<std::byte const> bytes, long begin,
                   named_parameter<T> const& to) noexcept {
  std::size_t const size = std::size_t(size_of(type)), count = bytes.size() / size,
                    rows = std::size_t(to.rows), columns = std::size_t(to.columns);
  if (!to.transposed)
    return decode<T>(type, bytes.data(), to.values.subspan(std::size_t(begin), count));
  if (count == 0) return;
  T* const first = to.values.data() + std::size_t(begin) / rows;
  std::size_t const lines = count / rows, taps = to.window();
  auto const copy = [&](auto number_at) {
    constexpr std::size_t tile = 16;
    for (std::size_t r = 0; r < rows; r += tile)
      for (std::size_t c = 0; c < lines; c += tile)
        for (std::size_t i = r; i < rows && i < r + tile; ++i) {
          std::size_t const place = taps > 1 ? to.place_of(i) : i;
          for (std::size_t k = c; k < lines && k < c + tile; ++k)
            first[i * columns + k] = number_at(bytes.data() + (k * rows + place) * size);
        }
  };
  if (type == stored_type_of<T>())
    copy([](std::byte const* at) {
      using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      return std::bit_cast<T>(little_endian<bits>(at));
    });
  else
    copy([type](std::byte const* at) {
      return with_reader_of(type, [at](auto number_at) { return T(number_at(at)); });
    });
}

/// Converts numbers to their bytes in a file, in place.
template <class T>
std::span<std::byte const> as_stored(std::span<T> numbers) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  for (T& number : numbers)
    put_little_endian(std::bit_cast<bits>(number), reinterpret_cast<std::byte*>(&number));
  return std::as_bytes(numbers);
}

/// Receives the bytes of a block.
using use_of_bytes = function_ref<void(std::span<std::byte const>)>;

/// Passes a parameter's bytes in a file of its own type to append(bytes), block by block.
template <class T>
[[gnu::cold]] void copy_own_out(named_parameter<T> const& from, stored_type, use_of_bytes append) {
  long const all = size_of(from), most = std::min(block_of(from), all);
  row_list<T> run(std::size_t(most > 0 ? most : 0));
  for (long begin = 0; begin < all; begin += most) {
    std::span<T> const block(run.data(), std::size_t(std::min(most, all - begin)));
    get_block<T>(from, {0, all, 0, from.values.data()}, begin, block);
    append(as_stored(block));
  }
}
/// The number of the first finite number that a type made infinite by rounding, or -1.
template <class T>
PIPE_ONE_COPY long first_overflow(std::span<T const> numbers, T const* stored) noexcept {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (libm::isfinite(numbers[i]) && !libm::isfinite(stored[i])) return long(i);
  return -1;
}
/// Converts a parameter to its bytes in a file, and calls append(bytes) for each block. Throws
/// data_error for a number that the type cannot represent.
template <class T>
[[gnu::cold]] void copy_out(named_parameter<T> const& from, stored_type type, use_of_bytes append) {
  long const all = size_of(from), most = std::min(block_of(from), all);
  std::size_t const numbers = std::size_t(most), size = std::size_t(size_of(type));
  row_list<T> run(numbers), stored(numbers);
  row_list<std::byte> bytes(numbers * size);
  for (long begin = 0; begin < all; begin += most) {
    std::size_t const count = std::size_t(std::min(most, all - begin));
    std::span<T> const block(run.data(), count);
    get_block<T>(from, {0, all, 0, from.values.data()}, begin, block);
    encode<T>(type, block, bytes.data());
    // The bytes are read back, because a number that is too large becomes infinite only by rounding
    // to the type.
    decode<T>(type, bytes.data(), {stored.data(), count});
    if (long const i = first_overflow<T>(block, stored.data()); i >= 0)
      throw_error<data_error>({"parameter ", quotation(from.name), ": number ", begin + i, ", ",
                               std::to_string(run[std::size_t(i)]), ", is too large for ",
                               name_of(type)});
    append(std::span<std::byte const>(bytes.data(), count * size));
  }
}

}  // namespace pp::detail
#if defined(PIPE_COMPILED) && !defined(__CUDACC__)
namespace pp::detail {

PIPE_COMPILED template decltype(most_of_block<float>) most_of_block<float>;
PIPE_COMPILED template decltype(get_block<float>) get_block<float>;
PIPE_COMPILED template decltype(put_block<float>) put_block<float>;
PIPE_COMPILED template decltype(copy_block_in<float>) copy_block_in<float>;
PIPE_COMPILED template decltype(copy_own_out<float>) copy_own_out<float>;
PIPE_COMPILED template decltype(copy_out<float>) copy_out<float>;

}  // namespace pp::detail
#endif
