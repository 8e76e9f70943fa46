// SPDX-License-Identifier: BSL-1.0
//
// Operands of products that are measured, and how far two results are apart.
#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <new>

#include <pipe/backend/host/isa.hpp>

/// Rounding in another order, relative to the largest element.
inline constexpr double largest_difference = 1e-5;

/// Numbers between -1/2 and 1/2, on whole cache lines.
struct matrix {
  using extent = pp::host::extent;
  extent elements;
  std::unique_ptr<float[], void (*)(float*)> items;

  explicit matrix(extent rows, extent columns)
      : elements(rows * columns), items(allocate(elements * extent(sizeof(float))), release) {}
  matrix(extent rows, extent columns, unsigned seed) : matrix(rows, columns) {
    for (extent i = 0; i < elements; ++i) {
      seed = seed * 1664525u + 1013904223u;
      items[std::size_t(i)] = float(seed >> 8) / 16777216.0f - 0.5f;
    }
  }
  float* data() const { return items.get(); }

 private:
  static float* allocate(extent bytes) {
    return static_cast<float*>(::operator new(std::size_t(bytes), std::align_val_t{64}));
  }
  static void release(float* p) { ::operator delete(p, std::align_val_t{64}); }
};

/// The largest |a - b| over the largest |a|.
inline double difference(matrix const& a, matrix const& b) {
  double most = 0, size = 0;
  for (matrix::extent i = 0; i < a.elements; ++i) {
    most = std::fmax(most, std::fabs(double(a.data()[i]) - double(b.data()[i])));
    size = std::fmax(size, std::fabs(double(a.data()[i])));
  }
  return most / size;
}
