// SPDX-License-Identifier: BSL-1.0
//
// Convolutions and their gradients through their CUDA kernel bodies: every kind of window, groups
// of channels and number format against fp64.
#include "catch.hpp"

#include "cuda/one_group.hpp"

using namespace pp;
using cuda::thread_order;
using on_host::buffer;

namespace {

using window = detail::convolution_axis;
constexpr detail::convolution_attributes attributes_of(window down, window across, int channels,
                                                       int filters, int groups) {
  for (window* a : {&down, &across}) a->out = (a->in + 2 * a->padding - a->reach()) / a->stride + 1;
  return {down, across, channels, filters, groups};
}

/// A group of a convolution or of its gradients. Operands 0 and 1 are read, 2 is written; an
/// epilogue adds the bias 3, stores to 4, and adds 5; a weight's gradient comes with that of a
/// bias, 3.
template <op_kind Kind, class Of>
struct convolution_group {
  static constexpr detail::group make() {
    constexpr detail::convolution_attributes of = Of::value;
    constexpr bool weight = Kind == op_kind::convolution_weight_gradient,
                   turned = Kind == op_kind::convolution_input_gradient;
    detail::group g;
    g.anchor = Kind;
    g.attributes = of;
    g.rows = turned ? of.in_rows() : of.out_rows();
    g.columns = turned ? of.channels : of.filters;
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
    if (weight) {
      g.prologue.push_back({op_kind::bias_gradient, 0, -1, 3, false});
    } else {
      g.epilogue.push_back({op_kind::bias, 0, 3, 4, false});
      g.epilogue.push_back({op_kind::add, 0, 5, 6, false});
    }
    g.operands = 7;
    return g;
  }
};

/// f(pixel of x, pixel of y, tap), each of its sample, for all that a window joins.
template <class F>
void for_joined(detail::convolution_attributes const& of, F f) {
  window const &down = of.vertical, &across = of.horizontal;
  for (int i = 0; i < down.out; ++i)
    for (int j = 0; j < across.out; ++j)
      for (int u = 0; u < down.kernel; ++u)
        for (int v = 0; v < across.kernel; ++v) {
          int const y = i * down.stride - down.padding + u * down.dilation,
                    x = j * across.stride - across.padding + v * across.dilation;
          if (y >= 0 && y < down.in && x >= 0 && x < across.in)
            f(y * across.in + x, i * across.out + j, u * across.kernel + v);
        }
}

template <class T, class Of, op_kind Kind, int Samples = 3>
void check(double tolerance, bool accumulate = false) {
  using P = on_host::one_group<T, convolution_group<Kind, Of>, Samples>;
  constexpr detail::convolution_attributes of = Of::value;
  constexpr bool weight = Kind == op_kind::convolution_weight_gradient,
                 turned = Kind == op_kind::convolution_input_gradient;
  constexpr int channels = of.channels / of.groups, filters = of.filters / of.groups;
  std::size_t const xs = std::size_t(of.in_rows() * of.channels * Samples),
                    ys = std::size_t(of.out_rows() * of.filters * Samples),
                    ws = std::size_t(of.inner() * of.filters),
                    columns = std::size_t(turned ? of.channels : of.filters);
  auto x = buffer<T>::random(xs, 1), w = buffer<T>::random(ws, 2), dy = buffer<T>::random(ys, 3),
       bias = buffer<T>::random(columns, 4);
  std::vector<double> c(weight ? ws : turned ? xs : ys), db(std::size_t(of.filters));
  for (int s = 0; s < Samples; ++s)
    for_joined(of, [&](int in, int out, int tap) {
      for (int n = 0; n < of.filters; ++n)
        for (int k = 0; k < channels; ++k) {
          std::size_t const at_x = std::size_t((s * of.in_rows() + in) * of.channels +
                                               n / filters * channels + k),
                            at_y = std::size_t((s * of.out_rows() + out) * of.filters + n),
                            at_w = std::size_t((tap * channels + k) * of.filters + n);
          if (weight)
            c[at_w] += x.value(at_x) * dy.value(at_y);
          else if (turned)
            c[at_x] += dy.value(at_y) * w.value(at_w);
          else
            c[at_y] += x.value(at_x) * w.value(at_w);
        }
    });
  for (std::size_t i = 0; i < ys; ++i) db[i % std::size_t(of.filters)] += dy.value(i);

  INFO(detail::name_of(Kind) << " " << of.vertical.kernel << "x" << of.horizontal.kernel << " of "
                             << of.channels << " in " << of.groups);
  cuda::arguments a;
  a.accumulate = accumulate;
  a.operand[0] = turned ? dy.data() : x.data();
  a.operand[1] = weight ? dy.data() : w.data();
  if constexpr (weight) {
    buffer<float> dw(ws), sums(columns);
    float const before = 0.5f;
    for (std::size_t i = 0; accumulate && i < ws; ++i) dw[i] = before, c[i] += double(before);
    for (std::size_t i = 0; accumulate && i < columns; ++i)
      sums[i] = before, db[i] += double(before);
    a.operand[2] = dw.data(), a.operand[3] = sums.data();
    on_host::run_alone<P>(a, thread_order::interleaved);
    CHECK(on_host::difference(dw, c) < 1e-5);
    CHECK(on_host::difference(sums, db) < 1e-5);
  } else {
    auto z = buffer<T>::random(c.size(), 6);
    buffer<T> y(c.size()), biased(c.size()), end(c.size());
    std::vector<double> ends(c);
    for (std::size_t i = 0; i < c.size(); ++i) ends[i] += bias.value(i % columns) + z.value(i);
    a.operand[2] = y.data(), a.operand[3] = bias.data(), a.operand[4] = biased.data();
    a.operand[5] = z.data(), a.operand[6] = end.data();
    on_host::run_alone<P>(a, thread_order::descending);
    CHECK(on_host::difference(y, c) < tolerance);
    CHECK(on_host::difference(end, ends) < tolerance);
  }
}

template <class T, class Of>
void check_all(double tolerance) {
  check<T, Of, op_kind::convolution>(tolerance);
  check<T, Of, op_kind::convolution_input_gradient>(tolerance);
  check<T, Of, op_kind::convolution_weight_gradient>(tolerance);
  check<T, Of, op_kind::convolution_weight_gradient>(tolerance, true);
}

/// x, out, kernel, stride, padding, dilation.
struct same {  // as in a residual net
  static constexpr auto value = attributes_of({7, 0, 3, 1, 1, 1}, {6, 0, 3, 1, 1, 1}, 8, 36, 1);
};
struct colours {  // three channels, of which no wide access is made
  static constexpr auto value = attributes_of({11, 0, 5, 2, 2, 1}, {10, 0, 4, 3, 1, 1}, 3, 16, 1);
};
struct sparse {  // all at once, in groups
  static constexpr auto value = attributes_of({9, 0, 3, 2, 3, 2}, {8, 0, 2, 2, 1, 3}, 12, 18, 3);
};
struct halved {  // whose input gradient passes over taps
  static constexpr auto value = attributes_of({9, 0, 3, 2, 1, 1}, {12, 0, 3, 2, 1, 1}, 20, 64, 2);
};
struct sequence {
  static constexpr auto value = attributes_of({1, 0, 1, 1, 0, 1}, {17, 0, 4, 3, 2, 1}, 20, 5, 1);
};
struct wide {  // several tiles of columns in each group
  static constexpr auto value = attributes_of({5, 0, 2, 1, 0, 1}, {5, 0, 2, 1, 0, 1}, 80, 160, 2);
};
struct depthwise {
  static constexpr auto value = attributes_of({9, 0, 3, 2, 1, 1}, {7, 0, 3, 1, 2, 2}, 12, 12, 12);
};
struct odd_depthwise {
  static constexpr auto value = attributes_of({6, 0, 2, 1, 0, 1}, {5, 0, 2, 2, 1, 1}, 2, 2, 2);
};

}  // namespace

TEST_CASE("convolutions are those of fp64", "[cuda]") {
  check_all<float, same>(1e-5);
  check_all<float, colours>(1e-5);
  check_all<float, sparse>(1e-5);
  check_all<float, sequence>(1e-5);
  check_all<float, halved>(1e-5);
  check_all<float, wide>(1e-5);
}
TEST_CASE("convolutions of 16-bit numbers", "[cuda]") {
  check_all<bf16, same>(2e-2);
  check_all<fp16, colours>(3e-3);
  check_all<bf16, sparse>(2e-2);
  check_all<bf16, halved>(2e-2);
}
TEST_CASE("depthwise convolutions are those of fp64", "[cuda]") {
  check_all<float, depthwise>(1e-5);
  check_all<float, odd_depthwise>(1e-5);
  check_all<fp16, depthwise>(3e-3);
}
