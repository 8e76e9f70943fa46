// SPDX-License-Identifier: BSL-1.0
//
// Layers that a user writes: a formula, and a layer with kernels of its own. Both obey the laws of
// the library's.
#include "catch.hpp"

#include <atomic>
#include <cmath>
#include <vector>

#include <pipe/train/check_gradients.hpp>

#include "laws/eager.hpp"
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
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr int parameters = 1;
  static constexpr custom::parameter parameter(int, sample_shape in) {
    return {1, in.columns(), "decay", {distribution::constant, 1}, false};
  }
  /// The plain sums, which the gradient of `decay` needs.
  static constexpr long saved_per_sample(sample_shape in) { return in.elements(); }
  static constexpr long flops(sample_shape in) { return 2 * in.elements(); }

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

// [bend]
/// y = tanh(slope[c] * x): the gradient of the slope reads the slope.
struct Bend {
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr int parameters = 1;
  static constexpr custom::parameter parameter(int, sample_shape in) {
    return {1, in.columns(), "slope", {distribution::constant, 1}, false};
  }
  static constexpr bool samples_are_independent = true;
  static constexpr long flops(sample_shape in) { return 20 * in.elements(); }

  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.y[i] = std::tanh(a.parameter[0][i % a.in.columns()] * a.x[i]);
  }
  template <class T>
  static T slope_of_tanh(T z) {
    T const y = std::tanh(z);
    return T(1) - y * y;
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) {
      T const slope = a.parameter[0][i % a.in.columns()];
      a.dx[i] = a.dy[i] * slope * slope_of_tanh(slope * a.x[i]);
    }
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) {
      T const slope = a.parameter[0][i % a.in.columns()];
      a.gradient[0][i % a.in.columns()] += a.dy[i] * a.x[i] * slope_of_tanh(slope * a.x[i]);
    }
  }
};
// [/bend]

/// y = tanh(slope[c] * (x - m[c])), where m follows a mean of slope * (x - m). All functions read
/// slope and m, or with Saves what forward has computed from them.
template <bool Saves>
struct Read {
  static inline std::atomic<int> most_samples = 0;  // of one call
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr int parameters = 1, buffers = 1;
  static constexpr bool samples_are_independent = true;
  static constexpr custom::parameter parameter(int, sample_shape in) {
    return {1, in.columns(), "slope", {distribution::constant, 1}, false};
  }
  static constexpr custom::buffer buffer(int, sample_shape in) {
    return {.form = sample_shape(in.columns()), .commit = {.momentum = 0.25f, .terms = in.rows()}};
  }
  static constexpr long saved_per_sample(sample_shape in) { return Saves ? 2 * in.elements() : 0; }

  /// slope, x - m, and the product of both.
  template <class T>
  struct terms {
    T slope, distance, product;
  };
  template <class Arguments>
  static auto terms_of(Arguments const& a, long i) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(a.x)>>;
    T const slope = a.parameter[0][i % a.in.columns()];
    if constexpr (Saves) return terms<T>{slope, a.saved[2 * i], a.saved[2 * i + 1]};
    T const distance = a.x[i] - a.buffer[0][i % a.in.columns()];
    return terms<T>{slope, distance, slope * distance};
  }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (int most = most_samples;
         most < a.samples && !most_samples.compare_exchange_weak(most, a.samples);) {
    }
    for (long i = 0; i < a.samples * a.in.elements(); ++i) {
      T const distance = a.x[i] - a.buffer[0][i % a.in.columns()],
              product = a.parameter[0][i % a.in.columns()] * distance;
      if (Saves) a.saved[2 * i] = distance, a.saved[2 * i + 1] = product;
      a.y[i] = std::tanh(product);
    }
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) {
      terms<T> const of = terms_of(a, i);
      a.dx[i] = a.dy[i] * of.slope * Bend::slope_of_tanh(of.product);
    }
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) {
      terms<T> const of = terms_of(a, i);
      a.gradient[0][i % a.in.columns()] += a.dy[i] * of.distance * Bend::slope_of_tanh(of.product);
    }
  }
  template <class T>
  static void statistics(custom::statistics<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.sum[0][i % a.in.columns()] += terms_of(a, i).product;
  }
};
template <bool Saves>
struct Reads : Model<Input<4>, Linear<5>, Custom<Read<Saves>>, Linear<6>, Tanh, Linear<5>,
                     Custom<Read<Saves>>, Linear<3>, MSE> {};
struct Bent : Model<Input<4>, Linear<40>, Custom<Bend>, Frozen<Custom<Bend>>,
                    Repeat<3, Linear<40>, Custom<Bend>>, Linear<3>, MSE> {};

/// The parameters and buffers after training without a flush on 12 mini-batches.
template <bool Saves, class Family>
std::vector<float> trained() {
  using Trainer = Pipeline<Reads<Saves>, PortableHost, SGD, Stages<4>, MicroBatches<3>,
                           MicroBatchSize<2>, Family>;
  typename Trainer::settings s{.seed = 3};
  s.optimizer.learning_rate = 0.3;
  Trainer trainer(s);
  std::vector<laws::sample_batch<Trainer>> data;
  for (int i = 0; i < 12; ++i) data.emplace_back(std::uint64_t(100 + i));
  std::vector<typename Trainer::batch> views;
  for (auto const& d : data) views.push_back(d.view());
  CHECK(trainer.train(views, [](step_result const& r) { CHECK(std::isfinite(r.loss)); }) == 12);
  return laws::snapshot(trainer).values;
}

/// Half as wide, nothing saved, no parameters.
struct PairSums {
  static constexpr sample_shape result(sample_shape in) {
    return in.with_columns(in.columns() / 2);
  }
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

TEST_CASE("a gradient of a user's own layer may read parameters and buffers", "[laws]") {
  laws::obeys<Bent>(2);
  laws::cuts_keep_the_bits<Reads<false>>(3);
  using one = Pipeline<Reads<false>, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>>;
  using saving = Pipeline<Reads<true>, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>>;
  laws::train_alike_from_the_start<saving, one>(4, 4);
}
TEST_CASE("weights are those of forward where a user's own layer reads them again", "[laws]") {
  CHECK(trained<false, PipeDream<>>() == trained<true, PipeDream<>>());
  CHECK(trained<false, PipeDream<true>>() == trained<true, PipeDream<true>>());
  CHECK(trained<false, PipeDream2BW<>>() == trained<true, PipeDream2BW<>>());
  // Backward reads newer weights than forward, so the test above tells versions apart.
  CHECK(trained<false, PACI<>>() != trained<true, PACI<>>());
}
TEST_CASE("threads divide samples of a user's own layer that says so", "[laws]") {
  using one = Pipeline<Reads<true>, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<7>>;
  Read<true>::most_samples = 0;
  one().evaluate(laws::sample_batch<one>(1).view());
  CHECK(Read<true>::most_samples == 7);
  // The kernels of this test are short: only an Eager backend divides them.
  using many = Pipeline<Reads<true>, laws::Eager<PortableHost>, HostThreads<3>, AdamW,
                        MicroBatches<2>, MicroBatchSize<7>>;
  Read<true>::most_samples = 0;
  many().evaluate(laws::sample_batch<many>(1).view());
  CHECK(Read<true>::most_samples == 3);
  laws::train_alike_from_the_start<one, many>(6, 3, 1);
  // More threads than samples.
  laws::train_alike_from_the_start<
      Pipeline<Bent, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>>,
      Pipeline<Bent, laws::Eager<PortableHost>, HostThreads<3>, AdamW, MicroBatches<2>,
               MicroBatchSize<2>>>(7, 2);
}

TEST_CASE("check_gradients tells right from wrong", "[laws]") {
  // [check]
  CHECK(check_gradients<Map<Softsign>, Input<6>>().ok());
  CHECK(check_gradients<Custom<RunningSum>, Input<4, 5>>().ok());
  // [/check]
  CHECK(check_gradients<Custom<Bend>, Input<4, 6>>().ok());
  CHECK(check_gradients<Custom<PairSums>, Input<4, 6>>().ok());
  CHECK(check_gradients<Embedding<3>, Tokens<5, 4>>().ok());
  CHECK_FALSE(check_gradients<Map<WrongSlope>, Input<6>>().ok());
  CHECK(check_gradients<Map<Doubled>, Input<6>>(1, 1e-2).ok(1e-3));  // rounds to float
}
