// SPDX-License-Identifier: BSL-1.0
//
// Which products are for cuBLASLt and which for our own kernels: constants of their shapes and
// formats.
#include "catch.hpp"

#include <pipe/backend/cuda/lowering/lowering.hpp>
#include <pipe/pipe.hpp>

using namespace pp;
using cuda::is_for_cublaslt;
using cuda::product_format;

namespace {

/// c[8192, Columns] over Inner in bf16, of one sample, with another bias and a GELU if it is Long.
template <op_kind Anchor, int Columns, int Inner, bool Long>
struct one_product {
  using element = bf16;
  using leaves = detail::layers<GELUTanh>;
  static constexpr int samples = 1;
  static constexpr detail::group group_at(int) {
    detail::group g;
    g.anchor = Anchor;
    g.rows = 8192, g.columns = Columns, g.attributes = detail::contraction_attributes{Inner};
    g.in[0] = 0, g.in[1] = 1;
    g.operands = 2;
    if (Anchor == op_kind::matmul_weight_gradient) {
      g.out[0] = 2;
      return g;
    }
    g.epilogue.push_back(
        detail::pointwise_op{op_kind::bias, 0, 2, static_cast<signed char>(Long ? -1 : 3), false});
    if (Long) g.epilogue.push_back(detail::pointwise_op{op_kind::map, 0, -1, 3, false});
    return g;
  }
};
template <op_kind Anchor, int Columns, int Inner, bool Long, detail::product_policy Policy>
constexpr detail::product_policy chosen =
    cuda::policy_of<one_product<Anchor, Columns, Inner, Long>, 0, Policy>();
template <op_kind Anchor, int Columns, int Inner, bool Long, detail::product_policy Policy>
constexpr long workspace =
    cuda::workspace_of<one_product<Anchor, Columns, Inner, Long>, 0, Policy>();

struct Net : Model<Input<24>, Linear<40>, ReLU, Linear<3>, MSE> {};

}  // namespace

TEST_CASE("large products in 16 bits and in tf32 are for cuBLASLt", "[cuda]") {
  for (product_format const f :
       {product_format::bf16, product_format::fp16, product_format::tf32}) {
    CHECK(is_for_cublaslt({16384, 3072, 768}, f, false));
    CHECK(is_for_cublaslt({16384, 2304, 768}, f, false));
    CHECK(is_for_cublaslt({16384, 768, 3072}, f, false));
    CHECK(is_for_cublaslt({16384, 50304, 768}, f, false));
    CHECK(is_for_cublaslt({3072, 768, 16384}, f, true));
    CHECK(is_for_cublaslt({8192, 8192, 8192}, f, false));
  }
}
TEST_CASE("small ones, fp32, and rows of odd sizes are for our own kernels", "[cuda]") {
  for (product_format const f :
       {product_format::bf16, product_format::fp16, product_format::tf32, product_format::fp32}) {
    CHECK_FALSE(is_for_cublaslt({1, 1, 1}, f, false));
    CHECK_FALSE(is_for_cublaslt({64, 64, 64}, f, false));
    CHECK_FALSE(is_for_cublaslt({256, 256, 256}, f, true));
    CHECK_FALSE(is_for_cublaslt({16384, 4097, 4096}, f, false));
    CHECK_FALSE(is_for_cublaslt({16384, 4096, 4097}, f, false));
    CHECK_FALSE(is_for_cublaslt({4097, 4096, 16384}, f, true));
  }
  CHECK(is_for_cublaslt({4096, 4096, 16385}, product_format::bf16,
                        true));  // rows of what it reads are 4096 long
  CHECK_FALSE(is_for_cublaslt({8192, 8192, 8192}, product_format::fp32, false));
  CHECK_FALSE(is_for_cublaslt({3072, 768, 16384}, product_format::fp32, true));
}

TEST_CASE("a plan depends on no step around a product, the other policies on nothing", "[cuda]") {
  using enum op_kind;
  using enum detail::product_policy;
  STATIC_REQUIRE(chosen<matmul, 3072, 768, false, planned> == cublaslt);
  STATIC_REQUIRE(chosen<matmul, 3072, 768, true, planned> == cublaslt);
  STATIC_REQUIRE(chosen<matmul_input_gradient, 3072, 768, true, planned> == cublaslt);
  STATIC_REQUIRE(chosen<matmul_weight_gradient, 3072, 768, false, planned> == cublaslt);
  STATIC_REQUIRE(chosen<matmul, 64, 64, false, planned> == own);
  STATIC_REQUIRE(chosen<matmul, 64, 64, true, planned> == own);
  STATIC_REQUIRE(chosen<matmul, 3072, 768, false, own> == own);
  STATIC_REQUIRE(chosen<matmul, 64, 64, false, cublaslt> == cublaslt);
  STATIC_REQUIRE(chosen<matmul, 64, 64, true, timed> == timed);
  STATIC_REQUIRE(chosen<norm, 64, 64, false, cublaslt> == own);
}

TEST_CASE("a library's workspace is planned where it may run, and nowhere else", "[cuda]") {
  using enum op_kind;
  using enum detail::product_policy;
  STATIC_REQUIRE(workspace<matmul, 3072, 768, false, own> < cuda::blas_bytes);
  STATIC_REQUIRE(workspace<matmul, 64, 64, false, planned> < cuda::blas_bytes);
  STATIC_REQUIRE(workspace<matmul, 64, 64, false, timed> >= cuda::blas_bytes);
  STATIC_REQUIRE(workspace<matmul, 3072, 768, false, planned> >= cuda::blas_bytes);
}

TEST_CASE("an option says who runs products; without one it is planned", "[cuda]") {
  STATIC_REQUIRE(Pipeline<Net, PortableHost>::compiled::products ==
                 detail::product_policy::planned);
  STATIC_REQUIRE(Pipeline<Net, PortableHost, PlannedProducts>::compiled::products ==
                 detail::product_policy::planned);
  STATIC_REQUIRE(Pipeline<Net, PortableHost, OwnProducts>::compiled::products ==
                 detail::product_policy::own);
}
