// SPDX-License-Identifier: BSL-1.0
//
// Layers that a user writes: a formula, and a layer with kernels of its own. Both obey the laws of
// the library's.
#include "catch.hpp"

#include <cmath>

#include <pipe/train/check_gradients.hpp>

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

// [formula]
/// x / (1 + |x|)
struct Softsign {
  template <class T>
  PIPE_HD static T forward(T x) {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
  template <class T>
  PIPE_HD static T derivative(T x) {
    T const d = T(1) + (x < T(0) ? -x : x);
    return T(1) / (d * d);
  }
};
// [/formula]

/// Reads its output, takes float alone.
struct Doubled {
  static constexpr bool derivative_reads_output = true;
  static float forward(float x) { return x + x; }
  static float derivative(float) { return 2; }
};
struct WrongSlope {
  template <class T>
  static T forward(T x) {
    return x * x;
  }
  template <class T>
  static T derivative(T x) {
    return x;
  }
};

// [custom]
/// y[t] = sum over s <= t of decay[c] * x[s]: positions see what came before them, each channel
/// with a factor of its own.
struct RunningSum {
  static constexpr shape result(shape in) { return in; }
  static constexpr int parameters = 1;
  static constexpr custom::parameter parameter(int, shape in) {
    return {1, in.columns(), "decay", {distribution::constant, 1}, false};
  }
  /// The plain sums, which the gradient of `decay` needs.
  static constexpr long saved_per_sample(shape in) { return in.elements(); }
  static constexpr long flops(shape in) { return 2 * in.elements(); }

  template <class T>
  static void forward(custom::forward<T> const& a) {
    int const rows = a.in.rows(), columns = a.in.columns();
    for (int b = 0; b < a.samples; ++b)
      for (int t = 0; t < rows; ++t)
        for (int c = 0; c < columns; ++c) {
          int const i = (b * rows + t) * columns + c;
          a.saved[i] = a.x[i] + (t > 0 ? a.saved[i - columns] : T(0));
          a.y[i] = a.parameter[0][c] * a.saved[i];
        }
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    int const rows = a.in.rows(), columns = a.in.columns();
    for (int b = 0; b < a.samples; ++b)
      for (int t = rows - 1; t >= 0; --t)
        for (int c = 0; c < columns; ++c) {
          int const i = (b * rows + t) * columns + c;
          a.dx[i] = a.parameter[0][c] * a.dy[i] + (t + 1 < rows ? a.dx[i + columns] : T(0));
        }
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a) {
    int const columns = a.in.columns();
    for (int i = 0; i < a.samples * a.in.elements(); ++i)
      a.gradient[0][i % columns] += a.dy[i] * a.saved[i];
  }
};
// [/custom]

/// Half as wide, nothing saved, no parameters.
struct PairSums {
  static constexpr shape result(shape in) { return in.with_columns(in.columns() / 2); }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (int i = 0; i < a.samples * a.in.elements() / 2; ++i) a.y[i] = a.x[2 * i] * a.x[2 * i + 1];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (int i = 0; i < a.samples * a.in.elements() / 2; ++i) {
      a.dx[2 * i] = a.dy[i] * a.x[2 * i + 1];
      a.dx[2 * i + 1] = a.dy[i] * a.x[2 * i];
    }
  }
};

struct Own
    : Model<Input<4, 5>, Linear<5>, Map<Softsign>, Custom<RunningSum>, Linear<6>, Custom<PairSums>,
            Linear<5>, Residual<LayerNorm, Map<Softsign>, Custom<RunningSum>>,
            Frozen<Custom<RunningSum>>, Linear<3>, MSE> {};

}  // namespace

TEST_CASE("a formula and a layer of a user's own obey the laws", "[laws]") { laws::obeys<Own>(1); }

TEST_CASE("a layer of a user's own is made again as it was", "[laws]") {
  using one = Pipeline<Own, PortableHost, AdamW, MicroBatches<4>>;
  laws::same_as_one_stage<
      one, Pipeline<Own, PortableHost, AdamW, MicroBatches<4>, Stages<3>, RecomputeAll>>(5);
  laws::same_as_one_stage<one, Pipeline<Own, PortableHost, AdamW, MicroBatches<4>, Stages<4>,
                                        Recompute<op_kind::custom>>>(5);
}

TEST_CASE("check_gradients tells right from wrong", "[laws]") {
  // [check]
  CHECK(check_gradients<Map<Softsign>, Input<6>>().ok());
  CHECK(check_gradients<Custom<RunningSum>, Input<4, 5>>().ok());
  // [/check]
  CHECK(check_gradients<Custom<PairSums>, Input<4, 6>>().ok());
  CHECK(check_gradients<Embedding<3>, Tokens<5, 4>>().ok());
  CHECK_FALSE(check_gradients<Map<WrongSlope>, Input<6>>().ok());
  CHECK(check_gradients<Map<Doubled>, Input<6>>(1, 1e-2).ok(1e-3));  // rounds to float
}
