// SPDX-License-Identifier: BSL-1.0
//
// One kernel group on its own, with numbers in memory of any type: its kernels run on buffers of
// exactly the size they need, outputs poisoned by NaN, to be compared with fp64.
#pragma once

#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include <pipe/backend/cuda/lowering/lowering.hpp>

#include "cuda/run_bodies.hpp"
#include "laws/data.hpp"

namespace on_host {

/// What a kernel asks of a compiled pipeline. Described::make() is the group.
template <class Element, class Described, int Samples, class... Leaves>
struct one_group {
  using element = Element;
  using leaves = pp::detail::layers<Leaves...>;
  static constexpr int samples = Samples;
  static constexpr pp::detail::group group_at(int) { return Described::make(); }
};

/// Memory as a kernel finds it: aligned, and of exactly this size.
template <class T>
class buffer {
 public:
  explicit buffer(std::size_t size)
      : size_(size),
        data_(static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t(64)))) {
    std::memset(static_cast<void*>(data_.get()), 0xff, size * sizeof(T));
  }
  /// Numbers in (-scale, scale), and what they are after rounding to T.
  static buffer random(std::size_t size, int stream, double scale = 1) {
    buffer b(size);
    for (std::size_t i = 0; i < size; ++i)
      b[i] = T(float(scale * laws::uniform(5, std::uint64_t(stream), i)));
    return b;
  }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  T const& operator[](std::size_t i) const { return data_.get()[i]; }
  double value(std::size_t i) const {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, int>)
      return double((*this)[i]);
    else
      return double(float((*this)[i]));
  }
  std::size_t size() const { return size_; }
  T* data() { return data_.get(); }

 private:
  struct release {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::size_t size_;
  std::unique_ptr<T, release> data_;
};

/// A number made of the bits of everything that `difference` has looked at.
inline std::uint64_t bits_seen = 0;

/// The largest difference, relative to the largest expected number; infinite if something is no
/// number.
template <class T>
double difference(buffer<T> const& found, std::vector<double> const& expected) {
  auto const* const bytes = reinterpret_cast<unsigned char const*>(&found[0]);
  for (std::size_t i = 0; i < found.size() * sizeof(T); ++i)
    bits_seen = (bits_seen ^ bytes[i]) * 0x100000001b3u;  // FNV-1a
  double most = 0, scale = 1e-30;
  if (found.size() != expected.size()) return HUGE_VAL;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(found.value(i))) return HUGE_VAL;
    most = std::fmax(most, std::fabs(found.value(i) - expected[i]));
    scale = std::fmax(scale, std::fabs(expected[i]));
  }
  return most / scale;
}

/// The same for lists.
inline double difference(std::vector<double> const& expected, std::vector<double> const& found) {
  double most = 0, scale = 1e-30;
  if (found.size() != expected.size()) return HUGE_VAL;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(found[i])) return HUGE_VAL;
    most = std::fmax(most, std::fabs(found[i] - expected[i]));
    scale = std::fmax(scale, std::fabs(expected[i]));
  }
  return most / scale;
}

template <class T>
constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-2;

/// Runs the kernels of group 0 of P in every order of threads.
template <class P>
void run_alone(pp::cuda::arguments a, pp::cuda::thread_order in) {
  using kernels = pp::cuda::lowered<P, 0>;
  buffer<unsigned char> workspace(std::size_t(pp::cuda::workspace_of(kernels{})) + 1);
  a.workspace = workspace.data();
  order = in;
  run_bodies(kernels{}, a);
  order = pp::cuda::thread_order::ascending;
}

/// What a device computes, it computes again to the bit. (On the CPU orders of threads are what
/// changes.)
template <class Checks>
void again_to_the_bit(Checks checks) {
  bits_seen = 0;
  checks();
  if constexpr (pp::detail::is_nvcc) {
    std::uint64_t const first = bits_seen;
    bits_seen = 0;
    checks();
    CHECK(bits_seen == first);
  }
}

}  // namespace on_host
