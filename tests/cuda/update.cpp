// SPDX-License-Identifier: BSL-1.0
//
// The kernels over flat parameter memory: optimizers, sums of squares, the outcome of a step and
// the loss scale, and copies.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <pipe/backend/cuda/update/accumulation_sums.hpp>
#include <pipe/backend/cuda/update/not_finite.hpp>
#include <pipe/backend/cuda/update/update.hpp>
#include <pipe/base/half.hpp>

#include "cuda/run_bodies.hpp"
#include "laws/data.hpp"

using namespace pp;

namespace {

constexpr cuda::thread_order orders[] = {
    cuda::thread_order::ascending, cuda::thread_order::descending, cuda::thread_order::interleaved};
constexpr float none = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

/// Where a kernel can reach it.
template <class T>
std::unique_ptr<T> kept(T const& x) {
  return std::make_unique<T>(x);
}

std::vector<float> numbers(std::uint64_t stream, cuda::extent count, double size = 1) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(size * laws::uniform(7, stream, i));
  return x;
}

/// No states: w -= rate * g.
struct Plain {
  static constexpr int states = 0;
  double learning_rate = 0.1;
  template <class T>
  struct coefficients {
    T scale, rate;
  };
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.gradient_scale), T(c.learning_rate)};
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g) {
    return w - c.rate * (g * c.scale);
  }
};

template <class Optimizer, class T>
void expected_step(typename Optimizer::template coefficients<T> const& c, T& w, T g, T& m, T& v) {
  if constexpr (Optimizer::states == 0)
    w = Optimizer::apply(c, w, g);
  else if constexpr (Optimizer::states == 1)
    w = Optimizer::apply(c, w, g, m);
  else
    w = Optimizer::apply(c, w, g, m, v);
}

/// The same bits. On the device within a few units of the last place: a root is rounded once there,
/// and within a unit of that on the host.
bool agree(std::vector<float> const& found, std::vector<float> const& expected) {
#ifdef __CUDACC__
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!(std::fabs(found[i] - expected[i]) <= 1e-6f * std::fabs(expected[i]) + 1e-8f))
      return false;
  return found.size() == expected.size();
#else
  return laws::same_numbers(found, expected);
#endif
}

/// Parameters of 5000, 1 and 37 elements with gaps between them, in two groups; three steps.
template <class Copy, class Optimizer>
void steps_are_the_formula(Optimizer const& o) {
  constexpr cuda::extent size = 5008 + 16 + 37;
  std::vector<cuda::flat_range> list;
  auto const append = [&](cuda::flat_range p) { list.push_back(p); };
  cuda::cut_into_ranges(0, 5000, 1, append);
  cuda::cut_into_ranges(5008, 1, 0, append);
  cuda::cut_into_ranges(5024, 37, 1, append);
  REQUIRE(list.size() == 4);
  for (auto const order : orders) {
    auto w = numbers(1, size), m = numbers(3, size, 0.1), v = numbers(4, size, 0.01);
    for (float& x : v) x = std::fabs(x);
    std::vector<Copy> copy(std::size_t{size}, Copy(none));
    auto expected_w = w, expected_m = m, expected_v = v;
    std::vector<double> exact_w(w.begin(), w.end()), exact_m(m.begin(), m.end()),
        exact_v(v.begin(), v.end());
    for (long step = 1; step <= 3; ++step) {
      auto const g = numbers(10 + std::uint64_t(step), size);
      auto const judged = kept(cuda::step_outcome{.factor = 0.375f * float(step)});
      custom::update_context const contexts[2] = {{step, 0.01, 1, 0}, {step, 0.02, 1, 0.5}};
      cuda::optimizer_step<Optimizer, Copy> f;
      std::vector<typename decltype(f)::coefficients> of_group;
      for (auto const& c : contexts) of_group.push_back(o.template prepare<float>(c));
      f.of_group = of_group.data();
      f.weights = w.data(), f.gradients = g.data(), f.first = m.data(), f.second = v.data(),
      f.copy = copy.data();
      f.judged = judged.get();
      on_host::run_kernel<cuda::flat_kernel<decltype(f)>>({{list.data(), 4, 0}, f}, order);
      for (cuda::flat_range const& p : list)
        for (std::size_t i = std::size_t(p.begin); i < std::size_t(p.begin + p.count); ++i) {
          custom::update_context c = contexts[p.group];
          // The kernel reads the factor on the device, and rounds the gradient that it scales.
          expected_step<Optimizer, float>(o.template prepare<float>(c), expected_w[i],
                                          g[i] * judged->factor, expected_m[i], expected_v[i]);
          c.gradient_scale = double(judged->factor);
          expected_step<Optimizer, double>(o.template prepare<double>(c), exact_w[i], double(g[i]),
                                           exact_m[i], exact_v[i]);
        }
    }
    CHECK(agree(w, expected_w));  // and nothing between the ranges
    CHECK(laws::same_numbers(m, expected_m));
    CHECK(laws::same_numbers(v, expected_v));
    double most = 0;
    for (std::size_t i = 0; i < w.size(); ++i)
      most = std::fmax(most, std::fabs(double(w[i]) - exact_w[i]));
    CHECK(most < 1e-6);
    long wrong = 0;
    for (cuda::flat_range const& p : list)
      for (std::size_t i = std::size_t(p.begin); i < std::size_t(p.begin + p.count); ++i)
        wrong += !(float(copy[i]) == float(Copy(w[i])));
    CHECK(wrong == 0);
    CHECK(std::isnan(float(copy[5001])));
  }
}

template <class F>
void over(cuda::extent elements, F const& f,
          cuda::thread_order order = cuda::thread_order::ascending) {
  on_host::run_kernel<cuda::flat_kernel<F>>({cuda::flat_ranges::over(elements), f}, order);
}

}  // namespace

TEST_CASE("an optimizer's step is its formula", "[cuda]") {
  steps_are_the_formula<float>(Plain{});
  steps_are_the_formula<bf16>(SGD{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  steps_are_the_formula<fp16>(Adam{.weight_decay = 0.1});
  steps_are_the_formula<bf16>(AdamW{});
  steps_are_the_formula<float>(NAdam{.momentum_decay = 0.2, .weight_decay = 0.1});
  steps_are_the_formula<float>(ErrorFeedback<Lion>{});
  steps_are_the_formula<fp16>(Adamax{.epsilon = 0.1, .weight_decay = 0.1});
  steps_are_the_formula<bf16>(RMSprop{.weight_decay = 0.1, .momentum = 0.9});
  steps_are_the_formula<float>(Adagrad{.weight_decay = 0.1, .initial_accumulator_value = 0.05});
  steps_are_the_formula<float>(ErrorFeedback<Adagrad>{});
  steps_are_the_formula<float>(Lion{.weight_decay = 0.1});
}

TEST_CASE("sums of squares of parameters do not depend on where these lie", "[cuda]") {
  auto const x = numbers(2, 12345);
  std::vector<double> together(1), apart;
  for (int place = 0; place < 2; ++place)
    for (auto const order : orders) {
      std::vector<float> memory(std::size_t(place) * 48, infinite);  // of another parameter
      memory.insert(memory.end(), x.begin(), x.end());
      std::vector<cuda::flat_range> list;
      cuda::cut_into_ranges(place * 48, 12345, 0, [&](cuda::flat_range p) { list.push_back(p); });
      std::vector<double> sums(list.size(), double(none)), of_parameter(2, double(none));
      on_host::run_kernel<cuda::sum_squares_kernel>(
          {{list.data(), cuda::extent(list.size()), 0}, memory.data(), sums.data()}, order);
      std::vector<cuda::extent> const first = {0, 1, 4};
      on_host::run_kernel<cuda::add_up_kernel>(
          {sums.data(), 0, first.data(), 2, of_parameter.data()}, order);
      CHECK(of_parameter[0] == sums[0]);
      on_host::run_kernel<cuda::add_up_kernel>({sums.data(), 4, nullptr, 1, together.data()},
                                               order);
      long double exact = 0;
      for (float const e : x) exact += static_cast<long double>(e) * e;
      CHECK(together[0] == Approx(double(exact)).epsilon(1e-14));
      CHECK(of_parameter[0] + of_parameter[1] == Approx(double(exact)).epsilon(1e-14));
      if (apart.empty()) apart = sums;
      CHECK(laws::same_numbers(apart, sums));
    }
}

TEST_CASE("the outcome of a step", "[cuda]") {
  auto squares = std::vector<double>(301, 0.25), clamped = std::vector<double>(301, 0.04);
  auto losses = std::vector<double>(777, 2.0);
  auto const outcome = kept(cuda::step_outcome{});
  auto const scale = kept(cuda::loss_scaling{});
  auto const state = kept(cuda::run_state{});
  state->loss_terms = 777;
  cuda::step_outcome& v = *outcome;
  cuda::loss_scaling& scaling = *scale;
  cuda::judge_kernel::arguments a{.squares = squares.data(),
                                  .parameters = 301,
                                  .losses = losses.data(),
                                  .rows = 777,
                                  .state = state.get(),
                                  .out = &v};
  auto const judge = [&] {
    on_host::run_kernel<cuda::judge_kernel>(a, cuda::thread_order::interleaved);
  };
  double const norm = std::sqrt(301 * 0.25);

  SECTION("without clipping") {
    state->gradient_scale = 0.5;
    judge();
    CHECK(v.loss == 2);
    CHECK(v.norm == Approx(norm / 2));
    CHECK(v.factor == 0.5f);
    CHECK(v.sound == 1);
    CHECK(v.updates == 1);
  }
  SECTION("of several losses") {
    auto several = losses;
    several.insert(several.end(), 777, 3.0);
    several.resize(3 * 777);  // the second further loss has no terms
    state->further.count = 2;
    state->further.items[0].counted = 7;
    state->further.items[0].weight = 0.5;
    a.losses = several.data();
    a.apart = 777;
    judge();
    CHECK((v.losses[0] == 2 && v.losses[1] == 333 && v.losses[2] == 0));
    CHECK(v.loss == 168.5);
  }
  SECTION("to a norm") {
    state->clip_norm = 100;
    judge();
    CHECK(v.factor == 1);
    state->clip_norm = 2;
    judge();
    CHECK(v.factor == float(2 / (norm + 1e-6)));
    CHECK(v.norm == Approx(norm));
  }
  SECTION("to a norm, what is left after clipping by value") {
    state->clip_norm = 2;
    a.clamped = clamped.data();
    judge();
    CHECK(v.factor == float(2 / (std::sqrt(301 * 0.04) + 1e-6)));
    CHECK(v.norm == Approx(norm));
  }
  SECTION("numbers that are not finite") {
    squares[300] = double(none);
    judge();
    CHECK(v.sound == 0);
    CHECK(v.rejected == 1);
    squares[300] = 1;
    losses[511] = double(infinite);
    judge();
    CHECK(v.sound == 0);
    CHECK(v.rejected == 2);
    CHECK(v.updates == 0);
  }
  SECTION("the loss scale") {
    a.scaling = &scaling;
    squares.assign(301, 0.25 * 65536.0 * 65536.0);
    judge();
    CHECK(v.norm == Approx(norm));
    CHECK(v.factor == 1 / 65536.0f);
    for (int i = 0; i < 1998; ++i) judge();
    CHECK(scaling.scale == 65536);
    CHECK(scaling.sound_steps == 1999);
    judge();
    CHECK(scaling.scale == 131072);
    CHECK(scaling.sound_steps == 0);
    judge();
    CHECK(v.norm == Approx(norm / 2));
    squares[0] = double(infinite);
    judge();
    CHECK(v.sound == 0);
    CHECK(scaling.scale == 65536);
    CHECK(scaling.sound_steps == 0);
    squares[0] = 1;
    losses[0] = double(none);  // rejects the step, but says nothing about the scale
    judge();
    CHECK(v.sound == 0);
    CHECK(scaling.sound_steps == 1);
    scaling = {std::numeric_limits<float>::max() / 1.5f, 1999};
    judge();
    CHECK(scaling.scale == std::numeric_limits<float>::max() / 1.5f);
    CHECK(scaling.sound_steps == 0);
  }
}

TEST_CASE("accumulations are joined level by level", "[cuda]") {
  constexpr cuda::extent size = 4099, apart = 4112;
  auto const own = numbers(1, size), levels = numbers(2, 2 * apart);
  auto losses = std::vector<double>(300, 0.1);
  for (auto const order : orders) {
    auto in_place = own, none_here = levels, kept = levels;
    over(size, cuda::join_elements{in_place.data(), in_place.data(), levels.data(), apart, 2},
         order);
    over(size, cuda::join_elements{none_here.data(), nullptr, none_here.data() + apart, apart, 1},
         order);
    over(size, cuda::join_elements{kept.data() + apart, own.data(), kept.data(), apart, 1}, order);
    long wrong = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      float const first = levels[i], second = levels[i + apart];
      wrong += in_place[i] != (own[i] + first) + second;
      wrong += none_here[i] != 0 + second;
      wrong += kept[i + apart] != own[i] + first;
    }
    CHECK(wrong == 0);

    auto sums = losses, partial = std::vector<double>{0.7, 0.3, 9};
    auto const all_losses = std::make_unique<double>(0.0);
    double const& alone = *all_losses;
    on_host::run_kernel<cuda::add_up_kernel>({losses.data(), 300, nullptr, 1, all_losses.get()},
                                             order);
    on_host::run_kernel<cuda::join_losses_kernel>({sums.data(), 300, partial.data(), 1, true},
                                                  order);
    CHECK(sums[0] == alone + 0.7);
    CHECK(partial == std::vector<double>{0.7, sums[0], 9});
    sums = losses;
    on_host::run_kernel<cuda::join_losses_kernel>({sums.data(), 300, partial.data(), 2, false},
                                                  order);
    CHECK(sums[0] == (alone + 0.7) + partial[1]);
    CHECK(partial[2] == 9);

    sums = losses;
    over(7, cuda::add_elements<double>{sums.data(), losses.data() + 8}, order);
    CHECK(std::count(sums.begin(), sums.end(), losses[0] + losses[8]) == 7);
    CHECK(sums[7] == losses[7]);
  }
}

TEST_CASE("the losses of rows are added by blocks, the last of which adds theirs", "[cuda]") {
  for (int const rows : {1, 255, 4096, 4097, 300 * 4096 + 5}) {
    std::vector<double> all(static_cast<std::size_t>(rows)), found(3, double(none));
    long double exact = 0;
    for (std::size_t i = 0; i < all.size(); ++i) exact += all[i] = laws::uniform(3, 1, i);
    std::vector<unsigned> ticket(1, 0);
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto given = all;
      on_host::run_kernel<cuda::sum_rows_kernel>({given.data(), rows, &found[i], ticket.data()},
                                                 orders[i]);
      CHECK(ticket[0] == 0);
      CHECK(laws::same_bits(found[i], found[0]));
    }
    CHECK(found[0] == Approx(double(exact)).epsilon(1e-14));
  }
}

TEST_CASE("an unsound step changes nothing", "[cuda]") {
  auto w = numbers(1, 100), m = numbers(2, 100), v = numbers(3, 100), average = numbers(4, 100);
  auto const g = numbers(5, 100), w_before = w, m_before = m, v_before = v,
             average_before = average;
  std::vector<bf16> copy(100, bf16(3.0f));
  auto const outcome = kept(cuda::step_outcome{});
  cuda::step_outcome& judged = *outcome;
  judged.sound = 0;
  cuda::optimizer_step<AdamW, bf16> f;
  auto const of_group = kept(AdamW{}.prepare<float>({1, 0.1, 1, 1}));
  f.of_group = of_group.get();
  f.weights = w.data(), f.gradients = g.data(), f.first = m.data(), f.second = v.data(),
  f.copy = copy.data();
  f.judged = &judged;
  over(100, f);
  auto const state = kept(cuda::run_state{});
  state->average_amount = 0.1f;
  over(100, cuda::approach_elements{average.data(), w.data(), state.get(), &judged});
  CHECK(laws::same_numbers(w, w_before));
  CHECK(laws::same_numbers(m, m_before));
  CHECK(laws::same_numbers(v, v_before));
  CHECK(laws::same_numbers(average, average_before));
  for (bf16 const x : copy) CHECK(float(x) == 3);
  judged.sound = 1;
  over(100, f);
  CHECK_FALSE(laws::same_numbers(w, w_before));
}

TEST_CASE("element by element", "[cuda]") {
  constexpr cuda::extent size = 8195;
  auto const x = numbers(1, size, 3), y = numbers(2, size);
  for (auto const order : orders) {
    auto const state = kept(cuda::run_state{});
    state->clip_value = 0.5f, state->average_amount = 0.25f;
    auto const scaling = kept(cuda::loss_scaling{4, 0});
    auto clamped = x, scaled_clamp = x, average = x, sum = x;
    clamped[5] = scaled_clamp[5] = none;
    std::vector<bf16> copy(std::size_t{size}, bf16(none));
    over(size, cuda::clamp_elements{clamped.data(), state.get(), nullptr}, order);
    over(size, cuda::clamp_elements{scaled_clamp.data(), state.get(), scaling.get()}, order);
    over(size, cuda::approach_elements{average.data(), y.data(), state.get(), nullptr}, order);
    over(size, cuda::add_elements<float>{sum.data(), y.data()}, order);
    over(size, cuda::convert_elements<bf16>{copy.data(), x.data()}, order);
    CHECK(std::isnan(clamped[5]));
    clamped[5] = std::fmin(0.5f, std::fmax(-0.5f, x[5]));
    scaled_clamp[5] = std::fmin(2.0f, std::fmax(-2.0f, x[5]));
    long wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      wrong += clamped[i] != std::fmin(0.5f, std::fmax(-0.5f, x[i]));
      wrong += scaled_clamp[i] != std::fmin(2.0f, std::fmax(-2.0f, x[i]));
      wrong += average[i] != x[i] + 0.25f * (y[i] - x[i]);
      wrong += sum[i] != x[i] + y[i];
      wrong += float(copy[i]) != float(bf16(x[i]));
    }
    CHECK(wrong == 0);
  }
}

namespace {

/// Whether a search in `before` zeros, one number of these bits and `after` zeros says that it is
/// not finite; in the second of two operands.
template <class Bits>
bool is_found(dtype type, Bits number, long before, long after) {
  std::vector<Bits> x(std::size_t(before + 1 + after));
  x[std::size_t(before)] = number;
  std::vector<float> const one(1, 1.0f);
  std::vector<int> found(cuda::find_not_finite_kernel::search_blocks, -1);
  cuda::find_not_finite_kernel::arguments const a{
      {{one.data(), 1, dtype::f32}, {x.data(), cuda::extent(x.size()), type}}, 2, found.data()};
  on_host::run_kernel<cuda::find_not_finite_kernel>(a);
  long sum = 0;
  for (int const flag : found) {
    CHECK((flag == 0 || flag == 1));
    sum += flag;
  }
  CHECK(sum <= 1);
  return sum == 1;
}

}  // namespace

TEST_CASE("numbers that are not finite are found, wherever they are, in every type", "[cuda]") {
  using half_bits = unsigned short;
  for (auto const& [before, after] :
       {std::pair{0L, 0L}, std::pair{7L, 300L}, std::pair{70000L, 0L}}) {
    for (unsigned bits : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xffffffffu})
      CHECK(is_found(dtype::f32, bits, before, after));
    for (unsigned bits : {0x7f7fffffu, 0xff7fffffu, 1u, 0x80000000u})
      CHECK_FALSE(is_found(dtype::f32, bits, before, after));
    for (int bits : {0x7f80, 0xff80, 0x7f81})
      CHECK(is_found(dtype::bf16, half_bits(bits), before, after));
    for (int bits : {0x7f7f, 0xff7f, 0x7c00})
      CHECK_FALSE(is_found(dtype::bf16, half_bits(bits), before, after));
    for (int bits : {0x7c00, 0xfc00, 0x7c01})
      CHECK(is_found(dtype::f16, half_bits(bits), before, after));
    for (int bits : {0x7bff, 0xfbff, 0x7800})
      CHECK_FALSE(is_found(dtype::f16, half_bits(bits), before, after));
  }
}
