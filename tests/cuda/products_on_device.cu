// SPDX-License-Identifier: BSL-1.0
//
// Laws of products by cuBLASLt on a GPU: a call computes what its description says, training by
// calls gives the bits of one stage, the same from run to run, and the losses of our own kernels.
// Compiled wherever nvcc is; run wherever a GPU is.
#include "catch.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

template <class... Options>
using Trained =
    Pipeline<laws::Everything, Cuda, AdamW, MicroBatches<5>, MicroBatchSize<2>, Options...>;

/// Residuals and activations that are one with their products; rows of 24 numbers the stand-in for
/// the library takes with an activation, those of 20 it does not.
struct Joined
    : Model<Input<16>, Linear<16>, Repeat<2, Residual<LayerNorm, Linear<24>, GELUTanh, Linear<16>>>,
            Residual<Linear<20>, GELUTanh, Linear<16>>, Linear<8>, MSE> {};
template <class... Options>
using InCalls = Pipeline<Joined, Cuda, AdamW, BF16, CublasLtProducts, MicroBatches<3>,
                         MicroBatchSize<2>, Options...>;

bool is_there() {
  if (cuda::cublaslt_handle::missing().empty()) return true;
  WARN("without cuBLASLt: " << cuda::cublaslt_handle::missing());
  return false;
}

enum class what { relu, weight, residual, gelu, gelu_gradient };

/// x w + a bias, and what follows it: ReLU; a residual or GELU, which are one with the product; or
/// the gradient of the weight and of the bias; or that of an input, and of the GELU that made it.
template <class T, what What>
struct one_product {
  using element = T;
  using leaves = detail::layers<ReLU, GELUTanh>;
  static constexpr int samples = 2;
  static constexpr detail::group group_at(int) {
    constexpr bool is_weight = What == what::weight, is_gradient = What == what::gelu_gradient;
    detail::group g;
    g.anchor = is_weight     ? op_kind::matmul_weight_gradient
               : is_gradient ? op_kind::matmul_input_gradient
                             : op_kind::matmul;
    g.rows = 72, g.columns = 96, g.attributes = detail::contraction_attributes{160};
    g.in[0] = 0, g.in[1] = 1;
    g.operands = 4;
    if (is_weight) {
      g.out[0] = 2;
      g.prologue.push_back(detail::pointwise_op{op_kind::bias_gradient, 0, -1, 3, false});
      return g;
    }
    if (is_gradient) {
      g.epilogue.push_back(detail::pointwise_op{op_kind::map_gradient, 1, 2, 3, true});
      return g;
    }
    bool const keeps_sum = What == what::gelu;
    g.epilogue.push_back(detail::pointwise_op{op_kind::bias, 0, 2,
                                              static_cast<signed char>(keeps_sum ? 4 : -1), false});
    if (What == what::residual)
      g.epilogue.push_back(detail::pointwise_op{op_kind::add, 0, 4, 3, true});
    else
      g.epilogue.push_back(detail::pointwise_op{op_kind::map, short(keeps_sum), -1, 3, keeps_sum});
    g.operands = What == what::relu ? 4 : 5;
    return g;
  }
  /// Which operands a launch reads.
  static constexpr bool reads(int index) {
    return index < 2 ||
           (What != what::weight && (index == 2 || (What == what::residual && index == 4)));
  }
};

/// The results of one launch, twice in the same place if it accumulates, from the same small
/// numbers.
template <class P, class Launch>
std::vector<double> results_of(Launch const& launch, bool accumulate) {
  using T = typename P::element;
  constexpr bool weight = P::group_at(0).anchor == op_kind::matmul_weight_gradient;
  constexpr auto bytes = cuda::operand_bytes<P, 0>();
  using lowering = cuda::blas_lowering<P, 0>;
  std::vector<cuda::device_buffer> memory;
  cuda::arguments a;
  for (int i = 0; i < P::group_at(0).operands; ++i) {
    memory.emplace_back(bytes[i]);
    a.operand[i] = memory.back().data();
    std::vector<T> numbers(std::size_t(bytes[i]) / sizeof(T));
    for (std::size_t k = 0; k < numbers.size(); ++k)
      numbers[k] = T(float(int((k * 7 + std::size_t(i)) % 13) - 6) / 8);
    if (P::reads(i))
      cuda::check(
          cudaMemcpy(a.operand[i], numbers.data(), std::size_t(bytes[i]), cudaMemcpyHostToDevice),
          "upload");
  }
  cuda::device_buffer const workspace(cuda::workspace_of<P, 0, product_policy::cublaslt>());
  a.workspace = workspace.data();
  cuda::device_buffer const tickets(cuda::most_tickets * long(sizeof(unsigned)));
  cuda::check(cudaMemset(tickets.data(), 0, std::size_t(tickets.bytes())), "tickets");
  a.tickets = tickets.as<unsigned>();
  cuda::stream const on;
  cuda::check(cudaDeviceSynchronize(), "upload");
  launch(a, a.operand, on);
  a.accumulate = accumulate;
  if (accumulate) launch(a, a.operand, on);
  cuda::check(cudaStreamSynchronize(on), "a product");
  std::vector<double> all;
  for (int i = 0; i < P::group_at(0).operands; ++i) {
    if (P::reads(i)) continue;
    auto const take = [&]<class Result>(Result) {
      std::vector<Result> found(std::size_t(bytes[i]) / sizeof(Result));
      cuda::check(
          cudaMemcpy(found.data(), a.operand[i], std::size_t(bytes[i]), cudaMemcpyDeviceToHost),
          "download");
      for (Result const v : found) all.push_back(double(float(v)));
    };
    weight ? take(float()) : take(T());
  }
  static_assert(lowering::product.m == 96);
  return all;
}

/// All numbers are multiples of 1/8 below 1, and sums of so few products are exact: both ways give
/// the same numbers but for rounding.
template <class P>
void call_is_what_it_says(double tolerance) {
  using lowering = cuda::blas_lowering<P, 0>;
  cuda::cublaslt_handle const handle;
  auto const made = cuda::cublaslt_product::make(handle, lowering::product, lowering::first_byte);
  REQUIRE(made != nullptr);
  cuda_group const call{&cuda::launch_group_by_cublaslt<P, 0>, made.get()},
      own{&cuda::launch_group<P, 0>, nullptr};
  cuda::prepare_kernels(cuda::lowered<P, 0>{});
  for (bool const accumulate : {false, true}) {
    auto const found = results_of<P>(call, accumulate), expected = results_of<P>(own, accumulate);
    CHECK(results_of<P>(call, accumulate) == found);
    double most = 0, scale = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      most =
          std::fmax(most, std::isfinite(found[i]) ? std::fabs(found[i] - expected[i]) : HUGE_VAL);
      scale = std::fmax(scale, std::fabs(expected[i]));
    }
    CHECK(scale > 1);
    CHECK(most <= tolerance * scale);
  }
}

}  // namespace

TEST_CASE("a call computes what its description says", "[gpu]") {
  if (!is_there()) return;
  call_is_what_it_says<one_product<float, what::relu>>(1e-5);
  call_is_what_it_says<one_product<float, what::weight>>(1e-5);
  call_is_what_it_says<one_product<bf16, what::relu>>(1e-2);
  call_is_what_it_says<one_product<bf16, what::weight>>(1e-5);
  call_is_what_it_says<one_product<fp16, what::relu>>(1e-3);
  call_is_what_it_says<one_product<fp16, what::weight>>(1e-5);
}
TEST_CASE("a call adds a residual, or computes GELUTanh and its derivative", "[gpu]") {
  if (!is_there()) return;
  call_is_what_it_says<one_product<bf16, what::residual>>(1e-2);
  call_is_what_it_says<one_product<bf16, what::gelu>>(1e-2);
  call_is_what_it_says<one_product<bf16, what::gelu_gradient>>(1e-2);
  call_is_what_it_says<one_product<fp16, what::residual>>(1e-3);
  call_is_what_it_says<one_product<fp16, what::gelu>>(1e-3);
  call_is_what_it_says<one_product<fp16, what::gelu_gradient>>(1e-3);
}

TEST_CASE("neither cuts nor recomputation change a bit of what calls compute in 16 bits", "[gpu]") {
  if (!is_there()) return;
  using one = InCalls<>;
  laws::train_alike_from_the_start<one, InCalls<Stages<3>, ZeroBubbleH1, RecomputeAll>>(7, 2, 2);
  laws::train_alike_from_the_start<one, InCalls<Recompute<op_kind::map>>>(7, 2, 2);
  Pipeline<Joined, Cuda, AdamW, BF16, OwnProducts, MicroBatches<3>, MicroBatchSize<2>> own(
      {.seed = 5});
  one calls({.seed = 5});
  laws::sample_batch<one> const data(1);
  CHECK(calls.step(data.view()).loss ==
        Approx(own.step(data.view<decltype(own)>()).loss).epsilon(1e-2));
}

TEST_CASE("products by cuBLASLt give the bits of one stage", "[gpu]") {
  if (!is_there()) return;
  laws::train_alike_from_the_start<Trained<CublasLtProducts>,
                                   Trained<CublasLtProducts, ZeroBubbleH1, Stages<4>>>(7, 3, 3);
  laws::train_alike_from_the_start<
      Trained<CublasLtProducts>, Trained<CublasLtProducts, GPipe, Stages<4>, RecomputeAllButLast>>(
      7, 3, 3);
}

TEST_CASE("losses are those of our own kernels, whoever multiplies", "[gpu]") {
  using own = Trained<OwnProducts>;
  using library = Trained<CublasLtProducts>;
  using timed = Trained<TimedProducts>;
  own expected({.seed = 5});
  library found({.seed = 5}), again({.seed = 5});
  timed faster({.seed = 5});
  INFO(found.runs_on() << "; " << faster.runs_on());
  for (int step = 0; step < 10; ++step) {
    laws::sample_batch<own> const data(std::uint64_t(step) + 1);
    auto const x = expected.step(data.view());
    auto const y = found.step(data.view<library>()), z = again.step(data.view<library>());
    CHECK(y.loss == Approx(x.loss).epsilon(1e-4));
    CHECK(laws::same_bits(y.loss, z.loss));
    CHECK(faster.step(data.view<timed>()).loss == Approx(x.loss).epsilon(1e-4));
  }
}
