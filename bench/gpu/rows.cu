// SPDX-License-Identifier: BSL-1.0
//
// Kernels that memory limits, as a share of what a copy reaches in the same run: bytes that must be
// read and written, over the time.
#include <pipe/cub_sort.cuh>

#include "copy_speed.cuh"
#include "group.cuh"

using namespace pp;

namespace {

namespace cuda = pp::cuda;  // not ::cuda, which CUB is made of

struct plain {
  using leaves = detail::layers<>;
};

/// LayerNorm, or its gradient with a residual's added.
template <op_kind Kind, int Rows, int Columns>
struct norm : plain {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = Kind;
    g.rows = Rows, g.columns = Columns;
    g.attributes = detail::norm_attributes{.has_mean = true, .epsilon = 1e-5f};
    for (signed char i = 0; i < 3; ++i) g.in[i] = i;
    g.out[0] = 3;
    (Kind == op_kind::norm ? g.out[1] : g.in[3]) = 4;
    g.operands = 5;
    return g;
  }
};

template <int Rows, int Columns>
struct classes : plain {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = op_kind::cross_entropy;
    g.rows = Rows, g.columns = Columns, g.attributes = detail::cross_entropy_attributes{};
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
    g.operands = 3;
    return g;
  }
};

template <class T>
void measure_norms(double copy) {
  constexpr int rows = 16384, columns = 4096;
  constexpr long n = long(rows) * columns;
  auto x = bench::random_numbers<T>(n, 1), dy = bench::random_numbers<T>(n, 2),
       gamma = bench::random_numbers<T>(columns, 3), beta = bench::random_numbers<T>(columns, 4);
  cuda::device_buffer y(n * long(sizeof(T))), statistics(2L * rows * long(sizeof(float)));
  double const forward =
      bench::microseconds_of_group<bench::alone<T, norm<op_kind::norm, rows, columns>>>(
          {x.data(), gamma.data(), beta.data(), y.data(), statistics.data()});
  double const bytes = double(n) * double(sizeof(T));
  bench::figure(std::string("rows_norm_forward_of_copy_") + bench::name_of<T>(),
                2e-3 * bytes / forward / copy);
  double const backward =
      bench::microseconds_of_group<bench::alone<T, norm<op_kind::norm_gradient, rows, columns>>>(
          {dy.data(), x.data(), gamma.data(), y.data(), statistics.data()});
  bench::figure(std::string("rows_norm_backward_of_copy_") + bench::name_of<T>(),
                3e-3 * bytes / backward / copy);
}

template <class T>
void measure_classes(double copy) {
  constexpr int rows = 8192, columns = 50304;
  constexpr long n = long(rows) * columns;
  auto x = bench::random_numbers<T>(n, 1, 4);
  std::vector<int> const all(std::size_t(rows), 17);
  cuda::device_buffer labels(rows * 4L), loss(rows * 8L), gradient(n * long(sizeof(T)));
  cuda::check(cudaMemcpy(labels.data(), all.data(), all.size() * 4, cudaMemcpyHostToDevice),
              "labels");
  cuda::arguments a;
  a.loss = loss.as<double>();
  cuda::run_state numbers;
  numbers.loss_scale = 1.0f / rows;
  cuda::device_buffer state(sizeof numbers);
  cuda::check(cudaMemcpy(state.data(), &numbers, sizeof numbers, cudaMemcpyHostToDevice),
              "numbers of a run");
  a.run = state.as<cuda::run_state>();
  double const us = bench::microseconds_of_group<bench::alone<T, classes<rows, columns>>>(
      {x.data(), labels.data(), gradient.data()}, a);
  bench::figure(std::string("rows_cross_entropy_of_copy_") + bench::name_of<T>(),
                2e-3 * double(n) * double(sizeof(T)) / us / copy);
}

/// The gradient of a table.
template <int Rows, int Vocabulary, int Columns>
struct table : plain {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = op_kind::lookup_gradient;
    g.rows = Rows, g.columns = Columns, g.attributes = detail::lookup_attributes{Vocabulary};
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
    g.operands = 3;
    return g;
  }
};

/// By our own sort, and by CUB's.
template <class T>
void measure_table() {
  constexpr int rows = 16384, vocabulary = 50304, columns = 768;
  using source = bench::alone<T, table<rows, vocabulary, columns>>;
  std::vector<int> all(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = int(math::random_block(1, 1, i).word[0] % unsigned(vocabulary));
  auto dy = bench::random_numbers<T>(long(rows) * columns, 1);
  cuda::device_buffer ids(rows * 4L), gradient(long(vocabulary) * columns * 4);
  cuda::check(cudaMemcpy(ids.data(), all.data(), all.size() * 4, cudaMemcpyHostToDevice), "ids");
  double const ours =
      bench::microseconds_of_group<source>({dy.data(), ids.data(), gradient.data()});
  bench::figure(std::string("rows_lookup_gradient_us_") + bench::name_of<T>(), ours, 1);
  using lowering = cuda::sort_lowering<source, 0>;
  cuda::device_buffer const workspace(lowering::workspace_bytes);
  cuda::arguments a;
  a.workspace = workspace.data();
  void* const operands[] = {dy.data(), ids.data(), gradient.data()};
  double const theirs = bench::microseconds([&](cudaStream_t on) {
    cuda::launch_group_by_sort<source, 0, cuda::cub_sort>(nullptr, a, operands, on);
  });
  bench::figure(std::string("rows_lookup_gradient_cub_over_ours_") + bench::name_of<T>(),
                theirs / ours);
}

/// AdamW on the parameters of GPT-2 124M; Copy: the type of the weights' copies, or void.
template <class Copy>
void measure_update(char const* name, double copy) {
  constexpr long elements = 124475904;
  using step = cuda::optimizer_step<AdamW, Copy>;
  auto w = bench::random_numbers<float>(elements, 1), g = bench::random_numbers<float>(elements, 2);
  constexpr long copied = std::is_void_v<Copy> ? 0 : 2;
  cuda::device_buffer m(elements * 4), v(elements * 4), copies(elements * copied),
      judged(sizeof(cuda::step_outcome));
  cuda::step_outcome const sound{.loss = 1, .norm = 1};
  cuda::check(cudaMemcpy(judged.data(), &sound, sizeof sound, cudaMemcpyHostToDevice),
              "an outcome");
  step f;
  auto const with = AdamW{}.prepare<float>(custom::update_context{1, 1e-4, 1, 1});
  cuda::device_buffer coefficients(sizeof with);
  cuda::check(cudaMemcpy(coefficients.data(), &with, sizeof with, cudaMemcpyHostToDevice),
              "coefficients");
  f.of_group = coefficients.as<typename step::coefficients>();
  f.weights = w.as<float>(), f.gradients = g.as<float>(), f.first = m.as<float>(),
  f.second = v.as<float>();
  f.judged = judged.as<cuda::step_outcome>();
  if constexpr (copied > 0) f.copy = copies.as<Copy>();
  double const us = bench::microseconds([&](cudaStream_t on) {
    cuda::launch_body<cuda::flat_kernel<step>>({cuda::flat_ranges::over(elements), f}, on);
  });
  bench::figure(std::string("update_of_copy_") + name,
                1e-3 * double(elements) * double(28 + copied) / us / copy);
}

}  // namespace

int main() {
  return bench::run("rows", [] {
    double const copy = bench::copy_speed();
    bench::figure("copy_GB_per_s_before_rows", copy, 0);
    measure_norms<bf16>(copy);
    measure_classes<bf16>(copy);
    measure_table<bf16>();
    measure_update<bf16>("bf16", copy);
    measure_norms<float>(copy);
    measure_classes<float>(copy);
    measure_update<void>("fp32", copy);
    bench::figure("copy_GB_per_s_after_rows", bench::copy_speed(), 0);
  });
}
