// SPDX-License-Identifier: BSL-1.0
//
// Matrix products of GPT-2 124M with everything that is fused into them, over what cuBLASLt takes
// for the product alone: seconds over seconds, so that 1 is as good. And what share of the data
// sheet's peak the plain product of a format reaches.
#include "cublas.cuh"
#include "group.cuh"

using namespace pp;
using cuda::product_format;

namespace {

enum class after { nothing, bias_and_gelu, bias_and_residual };

/// operands: 0 x, 1 w, 2 y, 3 bias, 4 residual
template <op_kind Kind, int Rows, int Columns, int Inner, after After, bool Is16Bit,
          bool IsTransposed>
struct product {
  using leaves = detail::layers<GELUTanh>;
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = Kind;
    g.rows = Rows, g.columns = Columns,
    g.attributes = detail::contraction_attributes{Inner, IsTransposed};
    g.in[0] = 0, g.in[1] = 1;
    g.operands = 5;
    if (After == after::nothing) {
      g.out[0] = 2;
    } else {
      // In 16 bits they are one with the product, as in a model.
      bool const is_joined = Is16Bit;
      g.epilogue.push_back({op_kind::bias, 0, 3, -1, false});
      g.epilogue.push_back(After == after::bias_and_gelu
                               ? detail::pointwise_op{op_kind::map, 0, -1, 2, is_joined}
                               : detail::pointwise_op{op_kind::add, 0, 4, 2, is_joined});
    }
    return g;
  }
};

template <class T, class Described, product_format Format>
struct in_format : bench::alone<T, Described> {
  static constexpr dtype product =
      Format == product_format::tf32 ? dtype::tf32 : detail::dtype_of<T>::value;
};

/// IsTransposed: the second operand lies in memory as its transpose.
template <class T, product_format Format, op_kind Kind, int Rows, int Columns, int Inner,
          after After, bool IsTransposed = false>
void measure(char const* what, char const* format) {
  constexpr bool is_weight = Kind == op_kind::matmul_weight_gradient;
  constexpr long m = is_weight ? Inner : Rows, k = is_weight ? Rows : Inner;
  using Out = std::conditional_t<is_weight, float, T>;
  auto x = bench::random_numbers<T>(m * k, 1), w = bench::random_numbers<T>(k * Columns, 2),
       bias = bench::random_numbers<T>(Columns, 3),
       residual = bench::random_numbers<T>(m * Columns, 4);
  cuda::device_buffer y(m * Columns * long(sizeof(Out)));
  using P = in_format<T, product<Kind, Rows, Columns, Inner, After, sizeof(T) == 2, IsTransposed>,
                      Format>;
  double const ours =
      bench::microseconds_of_group<P>({x.data(), w.data(), y.data(), bias.data(), residual.data()});
  std::string const name = std::string(what) + "_" + format;
  bench::figure("product_" + name + "_us", ours, 1);
  bench::figure("product_" + name + "_tflops", 2e-6 * double(m) * double(k) * Columns / ours, 0);
  double const theirs = bench::microseconds_of_cublaslt<T, Out>(
      m, Columns, k, Format == product_format::tf32, is_weight, IsTransposed, x.data(), w.data(),
      y.data());
  if (theirs > 0) bench::figure("product_" + name + "_over_cublaslt", ours / theirs);
  if constexpr (detail::has_target_for_wgmma && cuda::fits_wgmma<P, 0>()) {
    double const by_wgmma = bench::microseconds_of_group<P, decltype(cuda::lower_wgmma<P, 0>())>(
        {x.data(), w.data(), y.data(), bias.data(), residual.data()});
    bench::figure("product_" + name + "_wgmma_us", by_wgmma, 1);
    bench::figure("product_" + name + "_wgmma_tflops",
                  2e-6 * double(m) * double(k) * Columns / by_wgmma, 0);
    if (theirs > 0) bench::figure("product_" + name + "_wgmma_over_cublaslt", by_wgmma / theirs);
  }
}

template <class T, product_format Format>
void measure_all(char const* format) {
  constexpr int tokens = 8192;
  measure<T, Format, op_kind::matmul, tokens, 3072, 768, after::nothing>("plain", format);
  measure<T, Format, op_kind::matmul, tokens, 3072, 768, after::bias_and_gelu>("bias_gelu", format);
  measure<T, Format, op_kind::matmul, tokens, 768, 3072, after::bias_and_residual>("bias_residual",
                                                                                   format);
  measure<T, Format, op_kind::matmul_weight_gradient, tokens, 3072, 768, after::nothing>(
      "weight_gradient", format);
}

/// Other products of the model, of which the last are large.
void measure_others() {
  constexpr auto format = product_format::bf16;
  constexpr int tokens = 8192, vocabulary = 50304;
  measure<bf16, format, op_kind::matmul, tokens, 2304, 768, after::nothing>("qkv", "bf16");
  measure<bf16, format, op_kind::matmul, tokens, 768, 768, after::bias_and_residual>("mix", "bf16");
  measure<bf16, format, op_kind::matmul_input_gradient, tokens, 768, 3072, after::nothing, true>(
      "input_gradient", "bf16");
  measure<bf16, format, op_kind::matmul, tokens, vocabulary, 768, after::nothing, true>("logits",
                                                                                        "bf16");
  measure<bf16, format, op_kind::matmul_input_gradient, tokens, 768, vocabulary, after::nothing>(
      "logits_input_gradient", "bf16");
  measure<bf16, format, op_kind::matmul_weight_gradient, tokens, vocabulary, 768, after::nothing>(
      "logits_weight_gradient", "bf16");
}

}  // namespace

int main() {
  return bench::run("products", [] {
    measure_all<bf16, product_format::bf16>("bf16");
    measure_others();
    measure_all<float, product_format::tf32>("tf32");
    measure_all<float, product_format::fp32>("fp32");
  });
}
