// SPDX-License-Identifier: BSL-1.0
//
// Updates of whole tensors: each kernel against the host's formula in double precision, in three
// orders of the threads, on tensors of one range and of several.
#include "catch.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <pipe/backend/cuda/update/factored_means.hpp>
#include <pipe/backend/cuda/update/whole_tensors.hpp>
#include <pipe/base/half.hpp>
#include <pipe/optim/adafactor.hpp>
#include <pipe/optim/lamb.hpp>

#include "cuda/run_bodies.hpp"
#include "laws/data.hpp"
#include "laws/own_optimizer.hpp"

using namespace pp;

namespace {

constexpr cuda::thread_order orders[] = {
    cuda::thread_order::ascending, cuda::thread_order::descending, cuda::thread_order::interleaved};
constexpr float none = std::numeric_limits<float>::quiet_NaN();

std::vector<float> numbers(std::uint64_t stream, long count, double size = 1) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(size * laws::uniform(7, stream, i));
  return x;
}

/// What an optimizer computes with on the host, as plain loops.
struct loops {
  template <class F>
  void each(long n, F f) const {
    for (long i = 0; i < n; ++i) f(i);
  }
  double sum_of_squares(long n, double const* x) const {
    double sum = 0;
    for (long i = 0; i < n; ++i) sum += x[i] * x[i];
    return sum;
  }
  void sum_squares_of_columns(double const* x, long rows, long columns, double* out) const {
    for (long c = 0; c < columns; ++c) {
      out[c] = 0;
      for (long r = 0; r < rows; ++r) out[c] += x[r * columns + c] * x[r * columns + c];
    }
  }
};

static_assert(custom::two_pass_optimizer<laws::Normed> && custom::two_pass_optimizer<LAMB>);

/// Where tensors of a stage lie: gaps between them, and states elsewhere.
struct placed {
  custom::tensor_shape shape;
  long begin, state;
};

/// Lists and memory of a stage's tensors, as the runtime makes them.
template <class Optimizer>
struct stage {
  std::vector<placed> tensors;
  std::vector<cuda::updated_tensor> list;
  std::vector<cuda::flat_range> ranges;
  long elements = 0, state_numbers = 0;

  explicit stage(std::vector<custom::tensor_shape> const& shapes) {
    for (custom::tensor_shape const& s : shapes) {
      tensors.push_back({s, elements, state_numbers});
      cuda::updated_tensor t{elements, state_numbers, s.rows, s.columns};
      t.coefficients = int(list.size()) + 1;  // number 0 is another range's
      if constexpr (detail::factored_optimizer<Optimizer>)
        t.is_factored = Optimizer::is_factored(s.kind);
      cuda::cut_tensor(t, int(list.size()), cuda::extent(ranges.size()),
                       [&](cuda::flat_range const& x) { ranges.push_back(x); });
      list.push_back(t);
      elements += detail::padded<float>(s.elements());
      state_numbers += detail::padded<float>(Optimizer::state_elements(s));
    }
  }
};

/// Three steps on tensors of these shapes.
template <class Copy, class Optimizer>
void steps_are_the_formula(Optimizer const& o, std::vector<custom::tensor_shape> const& shapes) {
  stage<Optimizer> const of(shapes);
  using set = typename Optimizer::template tensor_coefficients<float>;
  constexpr std::size_t set_bytes = std::size_t(cuda::coefficient_bytes<Optimizer>());
  for (auto const order : orders) {
    auto w = numbers(1, of.elements), states = numbers(3, of.state_numbers, 0);
    auto const before = w;
    std::vector<double> exact_w(w.begin(), w.end()), exact_states(states.begin(), states.end());
    std::vector<Copy> copy(w.size(), Copy(none));
    std::vector<double> sums(of.ranges.size() * Optimizer::sums, double(none)),
        factors(of.list.size(), double(none));
    std::vector<unsigned> tickets(of.list.size(), 0);
    std::vector<float> row_factors(of.list.size(), none);
    std::vector<double> memory((of.list.size() + 1) * set_bytes / sizeof(double));  // aligned
    auto* const sets = reinterpret_cast<unsigned char*>(memory.data());
    for (long step = 1; step <= 3; ++step) {
      auto const g = numbers(10 + std::uint64_t(step), of.elements);
      auto const judged =
          std::make_unique<cuda::step_outcome>(cuda::step_outcome{.factor = 0.375f * float(step)});
      for (std::size_t i = 0; i < of.list.size(); ++i) {
        custom::update_context c{step, 0.01 * double(i + 1), 1, double(i % 2)};
        cuda::coefficients_at<Optimizer, set>(sets, long(i) + 1) =
            o.template prepare_tensor<float>(c);
        std::vector<double> gradient, workspace;
        placed const& p = of.tensors[i];
        long const n = p.shape.elements();
        for (long k = 0; k < n; ++k)
          gradient.push_back(double(g[std::size_t(p.begin + k)] * judged->factor));
        workspace.resize(
            std::size_t(Optimizer::template workspace_elements<void, double>(p.shape)));
        o.update(loops{}, c,
                 custom::tensor_update<double>{p.shape, exact_w.data() + p.begin, gradient.data(),
                                               exact_states.data() + p.state, workspace.data()});
      }
      cuda::tensor_memory<Optimizer> all{of.list.data(), sets,           w.data(),    g.data(),
                                         states.data(),  factors.data(), judged.get()};
      cuda::flat_ranges const where{of.ranges.data(), cuda::extent(of.ranges.size()), 0};
      if constexpr (detail::factored_optimizer<Optimizer>) {
        std::vector<cuda::factored_tensor> factored(of.list.size());
        std::vector<cuda::flat_range> tiles, means;
        long const count = cuda::list_matrices(
            of.list.data(), int(of.list.size()), factored.data(),
            [&](cuda::flat_range x) { tiles.push_back(x); },
            [&](cuda::flat_range x) { means.push_back(x); });
        std::vector<float> partial(std::size_t(count), none);
        std::vector<double> totals(means.size(), double(none));
        all.row_factors = row_factors.data();
        on_host::run_kernel<cuda::sum_tiles_kernel<Optimizer>>(
            {{tiles.data(), long(tiles.size()), 0}, all, factored.data(), partial.data()}, order);
        on_host::run_kernel<cuda::renew_means_kernel<Optimizer>>(
            {{means.data(), long(means.size()), 0},
             all,
             factored.data(),
             partial.data(),
             totals.data(),
             tickets.data()},
            order);
      }
      on_host::run_kernel<cuda::gather_tensors_kernel<Optimizer>>(
          {where, all, sums.data(), tickets.data()}, order);
      using move = cuda::move_tensors<Optimizer, Copy>;
      on_host::run_kernel<cuda::flat_kernel<move>>({where, move{all, copy.data()}}, order);
      for (unsigned const taken : tickets) CHECK(taken == 0);
    }
    double most = 0, of_states = 0;
    long wrong = 0;
    std::vector<bool> is_element(w.size(), false);
    for (placed const& p : of.tensors)
      for (long k = 0; k < p.shape.elements(); ++k) is_element[std::size_t(p.begin + k)] = true;
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (is_element[i]) {
        most = std::fmax(most, std::fabs(double(w[i]) - exact_w[i]));
        wrong += !(float(copy[i]) == float(Copy(w[i])));
      } else {
        wrong += w[i] != before[i] || !std::isnan(float(copy[i]));
      }
    }
    for (std::size_t i = 0; i < states.size(); ++i)
      of_states = std::fmax(of_states, std::fabs(double(states[i]) - exact_states[i]));
    CHECK(most < 1e-6);
    CHECK(of_states < 1e-6);
    CHECK(wrong == 0);
    bool moved = false;
    for (std::size_t i = 0; i < w.size(); ++i) moved = moved || w[i] != before[i];
    CHECK(moved);
  }
}

std::vector<custom::tensor_shape> const shapes = {
    {custom::tensor_kind::matrix, 100, 90}, {custom::tensor_kind::vector, 1, 37},
    {custom::tensor_kind::vector, 1, 1},    {custom::tensor_kind::table, 64, 64},
    {custom::tensor_kind::matrix, 7, 5},    {custom::tensor_kind::matrix, 33, 130}};

}  // namespace

TEST_CASE("a step of LAMB is its formula", "[cuda]") {
  steps_are_the_formula<bf16>(LAMB{}, shapes);
  steps_are_the_formula<float>(LAMB{.beta1 = 0.5, .weight_decay = 0.3}, shapes);
}

TEST_CASE("a step of Adafactor is its formula", "[cuda]") {
  auto more = shapes;
  more.push_back({custom::tensor_kind::matrix, 200, 516});
  more.push_back({custom::tensor_kind::matrix, 300, 3});
  more.push_back({custom::tensor_kind::matrix, 1, 700});
  more.push_back({custom::tensor_kind::table, 5, 1});
  steps_are_the_formula<bf16>(Adafactor{.epsilon1 = 1e-7, .weight_decay = 0.1}, more);
  steps_are_the_formula<float>(Adafactor{.epsilon1 = 1e-5, .epsilon2 = 0.5, .threshold = 0.2},
                               more);
}

TEST_CASE("a step of two passes without moments is its formula", "[cuda]") {
  steps_are_the_formula<fp16>(laws::Normed{}, shapes);
}

TEST_CASE("norms of 0 count as equal", "[cuda]") {
  LAMB const o{.learning_rate = 0.5, .weight_decay = 0};
  auto const with = o.prepare_tensor<float>({1, 0.5, 1, 0});
  CHECK(LAMB::factor(with, {0.0, 4.0}, 1) == 0.5);
  CHECK(LAMB::factor(with, {4.0, 0.0}, 1) == 0.5);
  CHECK(LAMB::factor(with, {16.0, 4.0}, 1) == 1);
}

TEST_CASE("a factor of a tensor does not depend on the others", "[cuda]") {
  custom::tensor_shape const shape{custom::tensor_kind::matrix, 123, 100};
  std::vector<double> of_last;
  for (auto const& all : {std::vector{shape}, std::vector{shapes[0], shapes[1], shape}})
    for (auto const order : orders) {
      stage<LAMB> const of(all);
      auto const begin = std::size_t(of.tensors.back().begin);
      std::vector<float> w(std::size_t(of.elements), 1.0f), g(w.size(), 1.0f);
      auto const own_w = numbers(1, shape.elements()), own_g = numbers(2, shape.elements());
      std::copy(own_w.begin(), own_w.end(), w.begin() + long(begin));
      std::copy(own_g.begin(), own_g.end(), g.begin() + long(begin));
      std::vector<float> states(std::size_t(of.state_numbers), 0.0f);
      std::vector<double> sums(2 * of.ranges.size()), factors(all.size());
      std::vector<unsigned> tickets(all.size(), 0);
      using set = LAMB::tensor_coefficients<float>;
      std::vector<set> const sets(all.size() + 1, LAMB{}.prepare_tensor<float>({1, 0.1, 1, 1}));
      cuda::tensor_memory<LAMB> const memory{
          of.list.data(), reinterpret_cast<unsigned char const*>(sets.data()),
          w.data(),       g.data(),
          states.data(),  factors.data(),
          nullptr};
      on_host::run_kernel<cuda::gather_tensors_kernel<LAMB>>(
          {{of.ranges.data(), cuda::extent(of.ranges.size()), 0},
           memory,
           sums.data(),
           tickets.data()},
          order);
      of_last.push_back(factors.back());
    }
  for (double const f : of_last) CHECK(f == of_last[0]);
}

TEST_CASE("an unsound step changes no whole tensor", "[cuda]") {
  stage<LAMB> const of(shapes);
  auto w = numbers(1, of.elements), states = numbers(2, of.state_numbers);
  auto const g = numbers(3, of.elements), w_before = w, states_before = states;
  std::vector<double> sums(2 * of.ranges.size()), factors(shapes.size(), 1);
  std::vector<unsigned> tickets(shapes.size(), 0);
  using set = LAMB::tensor_coefficients<float>;
  std::vector<set> const sets(shapes.size() + 1, LAMB{}.prepare_tensor<float>({1, 0.1, 1, 1}));
  auto const judged = std::make_unique<cuda::step_outcome>();
  judged->sound = 0;
  cuda::tensor_memory<LAMB> const memory{
      of.list.data(), reinterpret_cast<unsigned char const*>(sets.data()),
      w.data(),       g.data(),
      states.data(),  factors.data(),
      judged.get()};
  cuda::flat_ranges const where{of.ranges.data(), cuda::extent(of.ranges.size()), 0};
  auto const step = [&] {
    on_host::run_kernel<cuda::gather_tensors_kernel<LAMB>>(
        {where, memory, sums.data(), tickets.data()});
    on_host::run_kernel<cuda::flat_kernel<cuda::move_tensors<LAMB>>>({where, {memory, nullptr}});
  };
  step();
  CHECK(laws::same_numbers(w, w_before));
  CHECK(laws::same_numbers(states, states_before));
  for (unsigned const taken : tickets) CHECK(taken == 0);
  judged->sound = 1;
  step();
  CHECK_FALSE(laws::same_numbers(w, w_before));
}
