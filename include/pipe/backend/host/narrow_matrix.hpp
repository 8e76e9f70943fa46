// SPDX-License-Identifier: BSL-1.0
//
// A matrix of weights in fewer bits than a float, as a decoder keeps it: a product with one row is
// bound by the bytes of the matrix. Kernels widen weights to floats in registers, or block by block
// for many rows, so a product has the bits of one with a matrix of the rounded numbers.
#pragma once

#include <cstdint>
#include <cstring>

#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/half.hpp>
#include <pipe/base/libm.hpp>

namespace pp {

/// The numbers in which a decoder keeps its matrices: those of the trainer, in its memory; or a
/// copy of its own, rounded to bfloat16, or to 8-bit integers with a scale for each group of
/// inputs.
enum class decoder_weights : unsigned char { as_trained, bf16, int8 };

}  // namespace pp

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// The outputs of a panel, whose weights for one input are consecutive: a cache line of int8.
inline constexpr extent narrow_columns = 64;
/// The words of 32 bits that consecutive outputs are spread over: output c of a panel is in word
/// c % narrow_words, and outputs a multiple of narrow_words apart are fields of one word, the first
/// in the lowest bits. So shifts of words unpack all types, which every instruction set has.
inline constexpr extent narrow_words = 16;

/// The storage of weights: their type and, for integers, the number of consecutive inputs that
/// share a scale. A further type is a row here and in the tables of the two functions below, and a
/// load in per_isa/narrow_rows.inl.
struct weight_format {
  decoder_weights type = decoder_weights::as_trained;
  extent group = 0;  ///< inputs; 0: there are no scales

  constexpr int bits() const { return type == decoder_weights::bf16 ? 16 : 8; }
  /// Bytes of the weights of narrow_columns outputs for one input.
  constexpr extent row_bytes() const { return narrow_columns * bits() / 8; }
  /// The byte at which the word of output c of a panel begins in a row, and its field of the word.
  constexpr extent place_of_word(extent c) const {
    return (c / narrow_words / (32 / bits()) * narrow_words + c % narrow_words) * 4;
  }
  constexpr int field_of(extent c) const { return int(c / narrow_words) % (32 / bits()); }
  /// The bits of output c of a panel in a row, the highest ones of a word.
  std::uint32_t read(unsigned char const* row, extent c) const {
    std::uint32_t word;
    std::memcpy(&word, row + place_of_word(c), sizeof word);
    return word << (32 - bits() * (field_of(c) + 1)) >> (32 - bits()) << (32 - bits());
  }
  /// Writes the bits of output c, the lowest ones of `value`, into a row of zeros.
  void write(unsigned char* row, extent c, std::uint32_t value) const {
    std::uint32_t word;
    std::memcpy(&word, row + place_of_word(c), sizeof word);
    word |= value << (32 - bits()) >> (32 - bits()) << bits() * field_of(c);
    std::memcpy(row + place_of_word(c), &word, sizeof word);
  }
  /// Bytes of the scales of narrow_columns outputs for one group of inputs: floats.
  constexpr extent scale_bytes() const {
    return group == 0 ? 0 : narrow_columns * extent(sizeof(float));
  }
};

/// A matrix of weights in memory, panel after panel. A panel has, for each group of inputs, the
/// scales, then the weights input by input, and so is read in the order of memory by a product.
/// The last panel is padded with zeros.
///
/// law: the weight of input p and output j is its bfloat16, or q * scale rounded to a float
struct narrow_matrix {
  weight_format format;
  extent inputs = 0, outputs = 0;
  unsigned char* data = nullptr;

  constexpr extent group() const { return format.group == 0 ? inputs : format.group; }
  constexpr extent panel_bytes() const {
    return inputs * format.row_bytes() + (inputs + group() - 1) / group() * format.scale_bytes();
  }
  constexpr extent bytes() const {
    return (outputs + narrow_columns - 1) / narrow_columns * panel_bytes();
  }
  /// The weights of input p in the panel of output j.
  unsigned char* row(extent p, extent j) const {
    return data + j / narrow_columns * panel_bytes() + p * format.row_bytes() +
           (p / group() + 1) * format.scale_bytes();
  }
  /// The scales of the group of input p in the panel of output j.
  unsigned char* scales(extent p, extent j) const {
    return row(p / group() * group(), j) - format.scale_bytes();
  }
  /// The weights of one output, as floats: to[inputs].
  [[gnu::cold]] void read_output(extent j, float* to) const {
    extent const c = j % narrow_columns;
    for (extent p = 0; p < inputs; ++p) {
      std::uint32_t const bits = format.read(row(p, j), c);
      if (format.type == decoder_weights::bf16) {
        to[p] = __builtin_bit_cast(float, bits);
      } else {
        float scale;
        std::memcpy(&scale, scales(p, j) + extent(sizeof scale) * c, sizeof scale);
        to[p] = float(static_cast<std::int32_t>(bits) >> (32 - format.bits())) * scale;
      }
    }
  }
};

/// The number of steps of `scale` that is nearest to x, ties to even, in [-127, 127].
inline int nearest_step(float x, float scale) {
  if (scale == 0) return 0;
  long const q = __builtin_lrint(double(x) / double(scale));
  return int(q < -127 ? -127 : q > 127 ? 127 : q);
}

/// The weights of inputs [p, end) and of the `count` outputs of a panel from j on, in int8: the
/// scale of an output is its largest magnitude over 127.
inline void round_group(strided<float const> from, narrow_matrix const& to, extent p, extent end,
                        extent j, extent count) {
  float scales[narrow_columns] = {};
  for (extent i = p; i < end; ++i)
    for (extent c = 0; c < count; ++c)
      if (float const size = libm::fabs(*from.from(i, j + c).data); size > scales[c])
        scales[c] = size;
  for (float& scale : scales) scale /= 127;
  std::memcpy(to.scales(p, j), scales, sizeof scales);
  for (extent i = p; i < end; ++i) {
    unsigned char* const row = to.row(i, j);
    for (extent c = 0; c < count; ++c)
      to.format.write(row, c, std::uint32_t(nearest_step(*from.from(i, j + c).data, scales[c])));
  }
}

/// Rounds a matrix to the format of `to`. Returns whether all numbers are finite; if not, `to` is
/// of no use.
///
/// shape: from (inputs, outputs)
/// law:   int8: a weight differs from the given one by half a step of its group's scale at most,
///        but for the rounding of a float
/// needs: to.data has zeros, to.bytes() of them
[[gnu::cold]] inline bool round_matrix(strided<float const> from, narrow_matrix const& to) {
  for (extent p = 0; p < to.inputs; ++p)
    for (extent j = 0; j < to.outputs; ++j)
      if (!libm::isfinite(*from.from(p, j).data)) return false;
  for (extent j = 0; j < to.outputs; j += narrow_columns) {
    extent const left = to.outputs - j, count = left < narrow_columns ? left : narrow_columns;
    for (extent p = 0; p < to.inputs; p += to.group()) {
      extent const end = p + to.group() < to.inputs ? p + to.group() : to.inputs;
      if (to.format.type == decoder_weights::int8) {
        round_group(from, to, p, end, j, count);
        continue;
      }
      for (extent i = p; i < end; ++i)
        for (extent c = 0; c < count; ++c)
          to.format.write(to.row(i, j), c, detail::bf16_from_float(*from.from(i, j + c).data));
    }
  }
  return true;
}

/// The functions of one instruction set for matrices of one type; null for numbers other than
/// floats.
template <class T>
struct narrow_kernels {
  /// y[j] = x w[., j] for one row x and the outputs `own`, which begin a panel.
  void (*multiply)(narrow_matrix const& w, part_range own, T const* x, T* y) = nullptr;
  /// to[r, c] = w[p + r, j + c], r < depth, c < columns, rows of `columns` numbers. needs: j and
  /// columns are whole vectors, of outputs or of the last panel's padding
  void (*widen)(narrow_matrix const& w, extent p, extent depth, extent j, extent columns,
                T* to) = nullptr;
};

/// The right factor of contract_tiles: the outputs of a matrix from `first` on.
template <class T>
struct narrow_factor {
  narrow_kernels<T> const& kernels;
  narrow_matrix const& w;
  extent first;

  static void right(void* self, extent p, extent depth, extent j, int, int padded, T* panel) {
    auto const& f = *static_cast<narrow_factor const*>(self);
    f.kernels.widen(f.w, p, depth, f.first + j, padded, panel);
  }
};

}  // namespace pp::host
PIPE_OPTIMIZED_END
