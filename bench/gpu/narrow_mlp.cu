// SPDX-License-Identifier: BSL-1.0
//
// Forward and backward of a narrow MLP (five layers of width 64, 2^17 samples at once) against the
// same products by cuBLASLt in a CUDA
// graph: with bias and ReLU as epilogues forward, and backward nothing but the products.
#include <memory>

#include <pipe/pipe.hpp>

#include "cublas.cuh"

using namespace pp;

namespace {

constexpr int width = 64, depth = 5;
constexpr long samples = 1L << 17;

struct Mlp : Model<Input<width>, Linear<width>, ReLU, Linear<width>, ReLU, Linear<width>, ReLU,
                   Linear<width>, ReLU, Linear<width>, MSE> {};

/// Microseconds of the device, from the first action of a step to the end of the last.
template <class Precision>
double ours() {
  using trainer =
      Pipeline<Mlp, MicroBatches<1>, MicroBatchSize<int(samples)>, AdamW, Precision, Cuda>;
  trainer t({.runtime = {.timeline = true}});
  std::vector<float> x(std::size_t(samples * width)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 2 * math::unit_uniform(math::random_block(1, 1, i).word[0]) - 1;
    y[i] = x[i] * x[i];
  }
  std::vector<double> all;
  for (int step = 0; step < 18; ++step) {
    t.step({x, y});
    auto const actions = t.executed(0);
    if (step > 2) all.push_back(1e-3 * double(actions.back().end - actions.front().start));
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

/// All products, each enqueued once before the capture; 0 where there is no cuBLASLt.
template <class T>
double cublas() {
  if (!bench::has_cublaslt()) return 0;
  using product = bench::cublas_product<T>;
  constexpr pp::cuda::lt::compute_type compute = pp::cuda::lt::compute_type::fp32;
  std::vector<cuda::device_buffer> values, weights;
  for (int i = 0; i <= depth; ++i)
    values.push_back(bench::random_numbers<T>(samples * width, std::uint64_t(i)));
  for (int i = 0; i < depth; ++i)
    weights.push_back(bench::random_numbers<T>(width * width, std::uint64_t(i), 0.2f));
  auto const bias = bench::random_numbers<T>(width, 1);
  cuda::device_buffer gradient(samples * width * long(sizeof(T))), weight(width * width * 4);
  product const forward(samples, width, width, compute, false, false,
                        pp::cuda::lt::epilogue::relu_bias, bias.data());
  product const back(samples, width, width, compute, false, true);
  bench::cublas_product<T, float> const of_weight(width, width, samples, compute, true);
  return bench::microseconds([&](cudaStream_t on) {
    for (std::size_t i = 0; i < depth; ++i)
      forward.run(values[i].data(), weights[i].data(), values[i + 1].data(), on);
    for (std::size_t i = depth; i-- > 0;) {
      of_weight.run(values[i].data(), values[i + 1].data(), weight.data(), on);
      if (i > 0) back.run(values[i + 1].data(), weights[i].data(), gradient.data(), on);
    }
  });
}

template <class Precision, class T>
void measure() {
  std::string const name = bench::name_of<T>();
  double const us = ours<Precision>();
  bench::figure("narrow_mlp_us_" + name, us, 0);
  double const theirs = cublas<T>();
  if (theirs > 0) bench::figure("narrow_mlp_cublaslt_over_ours_" + name, theirs / us);
}

}  // namespace

int main() {
  return bench::run("narrow_mlp", [] {
    measure<BF16, bf16>();
    measure<FP32, float>();
  });
}
