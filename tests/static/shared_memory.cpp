// SPDX-License-Identifier: BSL-1.0
//
// The shared memory of a block of CUDA kernels: every GPU from sm_80 on has it. Families whose
// share depends on the model are listed here at their largest; of all others, and of these in every
// program, a trainer asserts the same. Exceptions are chains of narrow layers, which have what the
// devices have that the program is compiled for.
#include <utility>

#include <pipe/backend/cuda/lowering/lowering.hpp>
#include <pipe/backend/cuda/update/update.hpp>

using namespace pp;
using namespace pp::cuda;

namespace {

/// An attention, and its gradient, of heads of this size: few, or so many that warps take tall
/// tiles.
template <class T, int HeadSize, bool Many>
struct attention_alone {
  using element = T;
  using leaves = detail::layers<>;
  static constexpr int samples = Many ? 32 : 1;
  static constexpr detail::group group_at(int i) {
    detail::group g;
    g.anchor = i == 0 ? op_kind::attention : op_kind::attention_gradient;
    g.rows = 1024, g.columns = HeadSize;
    g.attributes = detail::attention_attributes{.heads = 1, .kv_heads = 1, .causal = true};
    g.in[0] = g.in[1] = g.in[2] = 0, g.in[3] = 1, g.in[4] = g.in[5] = -1, g.in[2] = i == 0 ? -1 : 0;
    if (i == 0) g.in[1] = g.in[3] = -1;
    g.out[0] = 2, g.out[1] = i == 0 ? 3 : -1;
    g.operands = 4;
    return g;
  }
};
template <class T, int HeadSize, bool Many>
constexpr bool attention_fits =
    fit_every_device(attention_bodies<attention_alone<T, HeadSize, Many>, 0>()) &&
    fit_every_device(attention_bodies<attention_alone<T, HeadSize, Many>, 1>());
template <class T, int... Sixteenths>
constexpr bool all_attentions_fit(std::integer_sequence<int, Sixteenths...>) {
  return ((attention_fits<T, 16 * (Sixteenths + 1), false> &&
           attention_fits<T, 16 * (Sixteenths + 1), true>) &&
          ...);
}
static_assert(all_attentions_fit<float>(std::make_integer_sequence<int, 8>{}));
static_assert(all_attentions_fit<bf16>(std::make_integer_sequence<int, 8>{}));

/// A product, of any kind.
template <class T, op_kind Kind, product_format Format>
struct product_alone {
  using element = T;
  using leaves = detail::layers<>;
  static constexpr dtype product =
      Format == product_format::tf32 ? dtype::tf32 : detail::dtype_of<T>::value;
  static constexpr int samples = 1;
  static constexpr detail::group group_at(int) {
    detail::group g;
    g.anchor = Kind, g.rows = g.columns = 1000, g.attributes = detail::contraction_attributes{1000};
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2;
    if (Kind == op_kind::matmul_weight_gradient)
      g.prologue.push_back(detail::pointwise_op{op_kind::bias_gradient, 0, -1, 3, false});
    g.operands = 4;
    return g;
  }
};
template <class P, product_format F>
constexpr bool tiles_fit = fit_every_device(lower_contraction<P, 0, large_tiles(F)>()) &&
                           fit_every_device(lower_contraction<P, 0, middle_tiles(F)>()) &&
                           fit_every_device(lower_contraction<P, 0, small_tiles(F)>());
template <class T, product_format F>
constexpr bool products_fit = tiles_fit<product_alone<T, op_kind::matmul, F>, F> &&
                              tiles_fit<product_alone<T, op_kind::matmul_input_gradient, F>, F> &&
                              tiles_fit<product_alone<T, op_kind::matmul_weight_gradient, F>, F>;
static_assert(products_fit<float, product_format::fp32>);
static_assert(products_fit<float, product_format::tf32>);
static_assert(products_fit<bf16, product_format::bf16>);

/// A kernel of a block of more is refused.
struct large {
  struct shared {
    char bytes[least_shared_bytes + 1];
  };
};
static_assert(!fit_every_device(kernel_list<judge_kernel, large>{}));

}  // namespace
