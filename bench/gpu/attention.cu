// SPDX-License-Identifier: BSL-1.0
//
// Causal attention over 2048 positions, forward and backward: TFLOP/s of the products below the
// diagonal, as the papers count them.
#include <pipe/cudnn_attention.cuh>

#include "group.cuh"

using namespace pp;

namespace {

constexpr int positions = 2048, width = 2048, samples = 8;

/// operands: 0 q, k and v side by side, 1 y, 2 logarithms of the sums, 3 dy, 4 their gradients
template <int Heads>
struct forward {
  using leaves = detail::layers<>;
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = op_kind::attention;
    g.rows = positions, g.columns = width;
    g.attributes = detail::attention_attributes{.heads = Heads, .kv_heads = Heads, .causal = true};
    g.in[0] = 0, g.out[0] = 1, g.out[1] = 2;
    g.operands = 5;
    return g;
  }
};
template <int Heads>
struct backward {
  using leaves = detail::layers<>;
  static constexpr detail::group make() {
    detail::group g = forward<Heads>::make();
    g.anchor = op_kind::attention_gradient;
    g.in[0] = 3, g.in[1] = 0, g.in[2] = 1, g.in[3] = 2;
    g.out[0] = 4, g.out[1] = -1;
    return g;
  }
};

template <class T, class Described>
struct of_samples : bench::alone<T, Described> {
  static constexpr int samples = ::samples;
};

/// The same by cuDNN, where it can.
template <class P>
void measure_cudnn(std::initializer_list<void*> operands, double ours, std::string const& name) {
  detail::attention_calls<cuda::cudnn_attention> calls;
  detail::cuda_group call;
  calls.decide<P, 0>(call);
  if (call.made == nullptr) {
    std::printf("%s%s\n", name.c_str(), calls.text().c_str());
    return;
  }
  cuda::device_buffer const workspace(cuda::attention_workspace_of<P, 0, cuda::cudnn_attention>());
  cuda::arguments a;
  a.workspace = workspace.data();
  double const theirs =
      bench::microseconds([&](cudaStream_t on) { call(a, operands.begin(), on); });
  bench::figure("attention_cudnn_over_ours_" + name, theirs / ours);
}

template <class T, int HeadSize>
void measure() {
  constexpr int heads = width / HeadSize;
  constexpr long rows = long(samples) * positions;
  auto qkv = bench::random_numbers<T>(rows * 3 * width, 1),
       dy = bench::random_numbers<T>(rows * width, 2);
  cuda::device_buffer y(rows * width * long(sizeof(T))), lse(rows * heads * 4),
      gradient(rows * 3 * width * long(sizeof(T)));
  std::initializer_list<void*> const operands = {qkv.data(), y.data(), lse.data(), dy.data(),
                                                 gradient.data()};
  double const products = 2e-6 * double(rows) * positions * width;  // both, over half of the scores
  double const ahead = bench::microseconds_of_group<of_samples<T, forward<heads>>>(operands);
  std::string const name = "d" + std::to_string(HeadSize) + "_" + bench::name_of<T>();
  bench::figure("attention_forward_tflops_" + name, products / ahead, 0);
  measure_cudnn<of_samples<T, forward<heads>>>(operands, ahead, name);
  double const back = bench::microseconds_of_group<of_samples<T, backward<heads>>>(operands);
  bench::figure("attention_backward_tflops_" + name, 2.5 * products / back, 0);
}

}  // namespace

int main() {
  return bench::run("attention", [] {
    measure<bf16, 64>();
    measure<bf16, 128>();
    measure<float, 64>();
    measure<float, 128>();
  });
}
