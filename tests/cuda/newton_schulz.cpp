// SPDX-License-Identifier: BSL-1.0
//
// Updates by a Newton-Schulz iteration: all kernels of a step of Muon against the host's formula in
// double precision, in three orders of the threads, on matrices that stand and lie.
#include "catch.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <pipe/backend/cuda/update/newton_schulz.hpp>
#include <pipe/backend/product_shape.hpp>
#include <pipe/base/half.hpp>
#include <pipe/optim/muon.hpp>

#include "cuda/run_bodies.hpp"
#include "laws/data.hpp"

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
  template <class T>
  static constexpr long contraction_elements(long, long, long) {
    return 0;
  }
  template <class F>
  void each(long n, F f) const {
    for (long i = 0; i < n; ++i) f(i);
  }
  double sum_of_squares(long n, double const* x) const {
    double sum = 0;
    for (long i = 0; i < n; ++i) sum += x[i] * x[i];
    return sum;
  }
  void transpose(double const* in, long rows, long columns, double* out) const {
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < columns; ++c) out[c * rows + r] = in[r * columns + c];
  }
  struct strided {
    double const* data;
    long row, column;
  };
  void contract(detail::product_shape const& shape, strided a, double const* b, double* c,
                double*) const {
    for (long i = 0; i < shape.rows; ++i)
      for (long j = 0; j < shape.columns; ++j) {
        double sum = 0;
        for (long p = 0; p < shape.inner; ++p)
          sum += a.data[i * a.row + p * a.column] * b[p * shape.columns + j];
        c[i * shape.columns + j] = sum;
      }
  }
};

/// A batch of matrices with all that their kernels go through.
struct batch {
  std::vector<custom::tensor_shape> shapes;
  std::vector<cuda::spectral_matrix> list;
  std::vector<cuda::flat_range> tiles, squares;
  long elements = 0, workspace = 0;

  explicit batch(std::vector<custom::tensor_shape> const& all) : shapes(all) {
    for (custom::tensor_shape const& s : all) {
      auto m = cuda::spectral_matrix::of(s.rows, s.columns, workspace);
      m.begin = m.state = elements;
      m.coefficients = int(list.size()) + 1;  // number 0 is another range's
      m.first_tile = cuda::extent(tiles.size());
      cuda::list_tiles(
          m, int(list.size()), [&](cuda::flat_range x) { tiles.push_back(x); },
          [&](cuda::flat_range x) { squares.push_back(x); });
      list.push_back(m);
      workspace += cuda::spectral_matrix::workspace(s.rows, s.columns);
      elements += detail::padded<float>(s.elements());
    }
  }
};

cuda::flat_ranges ranges(std::vector<cuda::flat_range> const& all) {
  return {all.data(), cuda::extent(all.size()), 0};
}

/// All launches of a step.
template <cuda::product_format F, class Copy>
void step(Muon const& o, batch const& b, cuda::spectral_memory<Muon> const& all, Copy* copy,
          cuda::thread_order order) {
  std::vector<double> sums(b.tiles.size(), double(none));
  std::vector<unsigned> tickets(b.list.size(), 0);
  on_host::run_kernel<cuda::average_matrices_kernel<Muon>>(
      {ranges(b.tiles), all, sums.data(), tickets.data()}, order);
  for (unsigned const taken : tickets) CHECK(taken == 0);
  using inner = cuda::spectral_product_kernel<Muon, F, false>;
  using last = cuda::spectral_product_kernel<Muon, F, true>;
  for (int i = 0; i < o.newton_schulz_steps; ++i) {
    bool const is_first = i == 0, is_swapped = i % 2 == 1;
    for (auto what : {cuda::spectral_product::square_x, cuda::spectral_product::polynomial})
      on_host::run_kernel<inner>({ranges(b.squares), all, what, is_first, is_swapped}, order);
    on_host::run_kernel<last>(
        {ranges(b.tiles), all, cuda::spectral_product::next, is_first, is_swapped}, order);
  }
  on_host::run_kernel<cuda::move_matrices_kernel<Muon, Copy>>(
      {ranges(b.tiles), all, o.newton_schulz_steps > 0, o.newton_schulz_steps % 2 == 1, copy},
      order);
}

/// Two steps on matrices of these shapes.
template <cuda::product_format F, class Copy>
void steps_are_the_formula(Muon const& o, std::vector<custom::tensor_shape> const& shapes,
                           double tolerance) {
  batch const b(shapes);
  using set = Muon::matrix_coefficients<float>;
  for (auto const order : orders) {
    auto w = numbers(1, b.elements), states = numbers(3, b.elements, 0);
    auto const before = w;
    std::vector<double> exact_w(w.begin(), w.end()), exact_states(states.begin(), states.end());
    std::vector<Copy> copy(w.size(), Copy(none));
    std::vector<float> factors(b.list.size(), none), room(std::size_t(b.workspace), none);
    constexpr std::size_t set_bytes = std::size_t(cuda::coefficient_bytes<Muon>());
    std::vector<double> memory((b.list.size() + 1) * set_bytes / sizeof(double));  // aligned
    auto* const sets = reinterpret_cast<unsigned char*>(memory.data());
    for (long number = 1; number <= 2; ++number) {
      auto const g = numbers(10 + std::uint64_t(number), b.elements);
      auto const judged = std::make_unique<cuda::step_outcome>(
          cuda::step_outcome{.factor = 0.375f * float(number)});
      for (std::size_t i = 0; i < b.list.size(); ++i) {
        custom::update_context const c{number, 0.01 * double(i + 1), 1, double(i % 2)};
        cuda::coefficients_at<Muon, set>(sets, long(i) + 1) =
            o.prepare_matrix<float>(c, b.shapes[i]);
        std::vector<double> gradient;
        for (long k = 0; k < b.shapes[i].elements(); ++k)
          gradient.push_back(double(g[std::size_t(b.list[i].begin + k)] * judged->factor));
        std::vector<double> workspace(
            std::size_t(Muon::workspace_elements<loops, double>(b.shapes[i])));
        o.update(loops{}, c,
                 custom::tensor_update<double>{
                     b.shapes[i], exact_w.data() + b.list[i].begin, gradient.data(),
                     exact_states.data() + b.list[i].state, workspace.data()});
      }
      cuda::spectral_memory<Muon> const all{b.list.data(),  sets,          w.data(),
                                            g.data(),       states.data(), room.data(),
                                            factors.data(), judged.get()};
      step<F>(o, b, all, copy.data(), order);
    }
    double most = 0, of_states = 0;
    long wrong = 0;
    std::vector<bool> is_element(w.size(), false);
    for (std::size_t i = 0; i < b.list.size(); ++i)
      for (long k = 0; k < b.shapes[i].elements(); ++k)
        is_element[std::size_t(b.list[i].begin + k)] = true;
    for (std::size_t i = 0; i < w.size(); ++i) {
      of_states = std::fmax(of_states, std::fabs(double(states[i]) - exact_states[i]));
      if (is_element[i]) {
        double const distance = std::fabs(double(w[i]) - exact_w[i]);
        most = distance > most || std::isnan(distance) ? distance : most;
        wrong += !(float(copy[i]) == float(Copy(w[i])));
      } else {
        wrong += w[i] != before[i] || !std::isnan(float(copy[i]));
      }
    }
    CHECK(most < tolerance);
    CHECK(of_states < 1e-6);
    CHECK(wrong == 0);
    CHECK_FALSE(laws::same_numbers(w, before));
  }
}

std::vector<custom::tensor_shape> const shapes = {{custom::tensor_kind::matrix, 37, 9},
                                                  {custom::tensor_kind::matrix, 9, 70},
                                                  {custom::tensor_kind::matrix, 1, 1},
                                                  {custom::tensor_kind::matrix, 65, 66}};

}  // namespace

TEST_CASE("a step of Muon in fp32 is its formula", "[cuda]") {
  steps_are_the_formula<cuda::product_format::fp32, float>(Muon{.newton_schulz_steps = 3}, shapes,
                                                           2e-6);
}
TEST_CASE("a step of Muon in tf32 is its formula", "[cuda]") {
  steps_are_the_formula<cuda::product_format::tf32, bf16>(
      Muon{.momentum = 0.5, .nesterov = false, .newton_schulz_steps = 4}, shapes, 1e-3);
}
TEST_CASE("Muon without iterations moves along the momentum", "[cuda]") {
  steps_are_the_formula<cuda::product_format::fp32, fp16>(Muon{.newton_schulz_steps = 0}, shapes,
                                                          1e-6);
}

TEST_CASE("a matrix does not depend on the others of its batch", "[cuda]") {
  custom::tensor_shape const shape{custom::tensor_kind::matrix, 33, 100};
  Muon const o{.newton_schulz_steps = 2};
  std::vector<std::vector<float>> found;
  for (auto const& all : {std::vector{shape}, std::vector{shapes[0], shapes[1], shape}})
    for (auto const order : orders) {
      batch const b(all);
      auto const begin = std::size_t(b.list.back().begin);
      std::vector<float> w(std::size_t(b.elements), 1.0f), g(w.size(), 1.0f), states(w.size());
      auto const own_w = numbers(1, shape.elements()), own_g = numbers(2, shape.elements());
      std::copy(own_w.begin(), own_w.end(), w.begin() + long(begin));
      std::copy(own_g.begin(), own_g.end(), g.begin() + long(begin));
      std::vector<float> factors(all.size(), none), room(std::size_t(b.workspace), none);
      using set = Muon::matrix_coefficients<float>;
      static_assert(sizeof(set) == cuda::coefficient_bytes<Muon>());
      std::vector<set> const sets(all.size() + 1, o.prepare_matrix<float>({1, 0.1, 1, 1}, shape));
      step<cuda::product_format::fp32, float>(
          o, b,
          {b.list.data(), reinterpret_cast<unsigned char const*>(sets.data()), w.data(), g.data(),
           states.data(), room.data(), factors.data(), nullptr},
          std::vector<float>(w.size()).data(), order);
      found.emplace_back(w.begin() + long(begin), w.begin() + long(begin) + shape.elements());
    }
  for (auto const& f : found) CHECK(laws::same_numbers(f, found[0]));
}

TEST_CASE("an unsound step changes no matrix", "[cuda]") {
  batch const b(shapes);
  auto w = numbers(1, b.elements), states = numbers(2, b.elements);
  auto const g = numbers(3, b.elements), w_before = w, states_before = states;
  std::vector<float> factors(b.list.size(), 1), room(std::size_t(b.workspace), 0.0f),
      copy(w.size());
  Muon const o{.newton_schulz_steps = 1};
  using set = Muon::matrix_coefficients<float>;
  std::vector<set> const sets(b.list.size() + 1,
                              o.prepare_matrix<float>({1, 0.1, 1, 1}, shapes[0]));
  auto const judged = std::make_unique<cuda::step_outcome>();
  cuda::spectral_memory<Muon> const all{
      b.list.data(),  reinterpret_cast<unsigned char const*>(sets.data()),
      w.data(),       g.data(),
      states.data(),  room.data(),
      factors.data(), judged.get()};
  judged->sound = 0;
  step<cuda::product_format::tf32>(o, b, all, copy.data(), cuda::thread_order::interleaved);
  CHECK(laws::same_numbers(w, w_before));
  CHECK(laws::same_numbers(states, states_before));
  judged->sound = 1;
  step<cuda::product_format::tf32>(o, b, all, copy.data(), cuda::thread_order::interleaved);
  CHECK_FALSE(laws::same_numbers(w, w_before));
}

TEST_CASE("batches of matrices are as large as their workspace allows", "[cuda]") {
  cuda::spectral_batches<Muon> batches;
  CHECK(batches.next(768, 3072));
  CHECK_FALSE(batches.next(3072, 768));
  CHECK(batches.most == 2 * cuda::spectral_matrix::workspace(768, 3072));
  CHECK(batches.next(768, 50304));  // too large for company
  CHECK(batches.next(768, 768));
  CHECK(batches.most == cuda::spectral_matrix::workspace(768, 50304));
  CHECK_FALSE(batches.next(64, 64));
}
