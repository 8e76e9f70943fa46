// SPDX-License-Identifier: BSL-1.0
//
// Laws of attention by cuDNN on a GPU: a call computes what its description says, and leaves what
// our own gradient reads; training has the bits of one stage, and the losses of our own kernels;
// what a call cannot do is ours. Compiled wherever nvcc is; run wherever a GPU is.
#include "catch.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "laws/bit_law.hpp"

#include <pipe/pipe.hpp>

#ifdef CUDNN_VERSION
#error "a program that does not ask for cuDNN includes it"
#endif
struct GPT;
// [cudnn]
#include <pipe/cudnn_attention.cuh>
#include <pipe/pipe.hpp>

using namespace pp;
using Trainer = Pipeline<GPT, AdamW, BF16, Cuda, CudnnAttention>;
// [/cudnn]
using namespace pp::detail;

namespace {

bool is_there() {
  if (cuda::cudnn_attention::missing().empty()) return true;
  WARN("without cuDNN: " << cuda::cudnn_attention::missing());
  return false;
}

/// q, k and v side by side, or queries of one sequence and keys of another.
template <class T, int Heads, int KeyHeads, int HeadSize, bool IsCausal, int Keys = 0,
          bool IsPadded = false>
struct one_attention {
  using element = T;
  using leaves = layers<>;
  static constexpr int samples = 2, queries = 37;
  static constexpr group group_at(int) {
    group g;
    g.anchor = op_kind::attention;
    g.rows = queries, g.columns = Heads * HeadSize;
    g.attributes = attention_attributes{
        .heads = Heads, .kv_heads = KeyHeads, .keys = Keys, .causal = IsCausal};
    g.in[0] = 0, g.out[0] = 2, g.out[1] = 3;
    if (Keys > 0) g.in[1] = 1;
    if (IsPadded) g.in[3] = 4;
    g.operands = 5;
    return g;
  }
};

template <class P>
constexpr bool is_ours = P::samples > 0 && !cuda::is_attention_call<P, 0>();

/// Numbers of the result, then logarithms.
template <class P, class Launch>
std::vector<double> results_of(Launch const& launch) {
  using T = typename P::element;
  using shape = cuda::attention_geometry<P, 0>;
  std::vector<cuda::device_buffer> memory;
  auto const give = [&](int rows, int columns, std::size_t size) {
    memory.emplace_back(long(size) * rows * columns);
    return memory.back().data();
  };
  int const rows = shape::samples * shape::queries;
  void* const operands[] = {give(rows, shape::is_fused ? shape::fused : shape::width, sizeof(T)),
                            give(shape::samples * shape::keys, 2 * shape::key_width, sizeof(T)),
                            give(rows, shape::width, sizeof(T)),
                            give(rows, shape::heads, sizeof(float)),
                            give(shape::samples, shape::keys, sizeof(int))};
  // One sample has all keys but five, another has none.
  std::vector<int> ids(std::size_t(shape::samples * shape::keys), -1);
  for (int i = 0; i + 5 < shape::keys; ++i) ids[std::size_t(i)] = i % 3 == 0 ? -1 : i;
  cuda::check(cudaMemcpy(operands[4], ids.data(), ids.size() * sizeof(int), cudaMemcpyHostToDevice),
              "upload");
  for (int i = 0; i < 2; ++i) {
    std::vector<T> numbers(std::size_t(memory[std::size_t(i)].bytes()) / sizeof(T));
    for (std::size_t k = 0; k < numbers.size(); ++k)
      numbers[k] = T(float(int((k * 7 + k / 5 + std::size_t(i)) % 29) - 14) / 8);
    cuda::check(
        cudaMemcpy(operands[i], numbers.data(), numbers.size() * sizeof(T), cudaMemcpyHostToDevice),
        "upload");
  }
  cuda::device_buffer const workspace(
      std::max(cuda::workspace_of(cuda::lowered<P, 0>{}),
               cuda::attention_workspace_of<P, 0, cuda::cudnn_attention>()));
  cuda::arguments a;
  a.workspace = workspace.data();
  cuda::stream const on;
  cuda::check(cudaDeviceSynchronize(), "upload");
  launch(a, operands, on);
  cuda::check(cudaStreamSynchronize(on), "an attention");
  std::vector<double> all;
  auto const take = [&]<class Result>(Result, std::size_t index) {
    std::vector<Result> found(std::size_t(memory[index].bytes()) / sizeof(Result));
    cuda::check(cudaMemcpy(found.data(), operands[index], found.size() * sizeof(Result),
                           cudaMemcpyDeviceToHost),
                "download");
    for (Result const v : found) all.push_back(double(float(v)));
  };
  take(T(), 2);
  take(float(), 3);
  return all;
}

template <class P>
void call_is_what_it_says(double tolerance) {
  static_assert(cuda::is_attention_call<P, 0>());
  cuda::prepare_kernels(cuda::lowered<P, 0>{});
  attention_calls<cuda::cudnn_attention> calls;
  cuda_group const own{&cuda::launch_group<P, 0>, nullptr};
  cuda_group call = own;
  calls.decide<P, 0>(call);
  REQUIRE(call.made != nullptr);
  CHECK(calls.text() == ", cuDNN for 1 of 1 attentions");
  auto const expected = results_of<P>(own), found = results_of<P>(call);
  CHECK(results_of<P>(call) == found);
  double most = 0, scale = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    most = std::fmax(most, std::isfinite(found[i]) ? std::fabs(found[i] - expected[i]) : HUGE_VAL);
    scale = std::fmax(scale, std::fabs(expected[i]));
  }
  CHECK(scale > 1);
  CHECK(most <= tolerance * scale);
}

struct Gpt : Model<Tokens<23, 9>, Embedding<32>, Positions,
                   Residual<LayerNorm, Attention<4>, Dropout<1, 10>>,
                   Residual<LayerNorm, Attention<2, KeyValueHeads<1>, NotCausal>>, LayerNorm,
                   Linear<23>, CrossEntropy> {};
/// One attention that a call can do; heads of 4, and rotations, which are ours.
struct Mixed : Model<Tokens<23, 9>, Embedding<32>, Residual<LayerNorm, Attention<2>>,
                     Residual<LayerNorm, Attention<8>>, Residual<LayerNorm, Attention<2, RoPE<>>>,
                     Linear<23>, CrossEntropy> {};

template <class M, class... Options>
using Trained = Pipeline<M, Cuda, AdamW, MicroBatches<4>, MicroBatchSize<2>, Options...>;

}  // namespace

TEST_CASE("an attention by cuDNN computes what its description says", "[gpu]") {
  if (!is_there()) return;
  call_is_what_it_says<one_attention<bf16, 3, 3, 16, true>>(1e-2);
  call_is_what_it_says<one_attention<fp16, 4, 2, 24, true>>(1e-3);
  call_is_what_it_says<one_attention<bf16, 2, 1, 64, false>>(1e-2);
  call_is_what_it_says<one_attention<fp16, 2, 2, 8, false, 51>>(1e-3);
  call_is_what_it_says<one_attention<bf16, 2, 2, 16, true, 0, true>>(1e-2);
  call_is_what_it_says<one_attention<fp16, 2, 1, 16, false, 41, true>>(1e-3);
}

TEST_CASE("attention by cuDNN gives the bits of one stage and the losses of our own", "[gpu]") {
  if (!is_there()) return;
  using own = Trained<Gpt, BF16>;
  using library = Trained<Gpt, BF16, CudnnAttention>;
  laws::train_alike_from_the_start<
      library, Trained<Gpt, BF16, CudnnAttention, Stages<2>, RecomputeAllButLast>>(7, 3, 3);
  own expected({.seed = 5});
  library found({.seed = 5}), again({.seed = 5});
  CHECK_THAT(found.runs_on(), Catch::Matchers::Contains(", cuDNN for 2 of 2 attentions"));
  for (int step = 0; step < 6; ++step) {
    laws::sample_batch<own> const data(std::uint64_t(step) + 1);
    auto const x = expected.step(data.view());
    auto const y = found.step(data.view<library>()), z = again.step(data.view<library>());
    CHECK(y.loss == Approx(x.loss).epsilon(1e-2));
    CHECK(y.gradient_norm == Approx(x.gradient_norm).epsilon(5e-2));
    CHECK(laws::same_bits(y.loss, z.loss));
  }
}

TEST_CASE("what cuDNN cannot do, or is not there for, is ours", "[gpu]") {
  using mixed = Trained<Mixed, BF16, CudnnAttention>;
  CHECK_THAT(mixed().runs_on(),
             Catch::Matchers::Contains(is_there() ? ", cuDNN for 1 of 3 attentions"
                                                  : ", without cuDNN: "));
  static_assert(is_ours<one_attention<float, 2, 2, 16, true>>);
  static_assert(is_ours<one_attention<bf16, 2, 2, 12, true>>);
  static_assert(is_ours<one_attention<bf16, 2, 2, 16, true, 41>>);
}
