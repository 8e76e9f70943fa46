// SPDX-License-Identifier: BSL-1.0
//
// Losses by rows: a formula of all numbers of a row at once.
#pragma once

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/loss_rows.hpp>
#include <pipe/base/custom.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/graph/loss_labels.hpp>

#ifdef __CUDACC__  // nvcc only warns of a user-defined formula that is for the host alone, and
                   // calls nothing
#pragma nv_diagnostic push
#pragma nv_diag_error 20011, 20013, 20014, 20015
#endif

namespace pp::cuda {

/// A formula of each row and its gradient, which are float.
///
/// shape: x (R, C), label (R, D), further targets (R) -> losses (R) in fp64, gradient (R, C)
/// work:  a thread for each row; the row and its slopes are floats in the workspace
template <class P, int G>
struct row_loss_kernel : loss_rows<P, G, int(sizeof(float))> {
  using base = loss_rows<P, G, int(sizeof(float))>;
  using base::columns, base::rows;
  using typename base::T;
  using layer = detail::leaf_at<group_of<P, G>::value.leaf, typename P::leaves>;
  static constexpr int label_size = detail::labels_of_row<layer>(columns), threads = 32;
  static constexpr extent blocks = (rows + threads - 1) / threads;
  static constexpr long workspace_bytes = long(rows) * 2 * columns * long(sizeof(float));
  struct state {};
  struct shared {};

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_left_out(a)) return;
    block.part([&](int thread, state&) {
      extent const row = block.position() * threads + thread;
      if (row < rows) run_row(a, row);
    });
  }

 private:
  PIPE_HD static void run_row(arguments const& a, extent row) {
    auto const memory = base::in_memory(a);
    bool const counts = base::counts(a, row);
    float *const x = static_cast<float*>(a.workspace) + row * 2 * columns, *const to = x + columns;
    if (counts) {
      for (int i = 0; i < columns; ++i) x[i] = float(*memory.at(row, i));
      float const* label = nullptr;
      if constexpr (label_size > 0) label = a.at<float const>(base::labels) + row * label_size;
      custom::row<float const> const of_row{x, columns}, of_label{label, label_size};
      base::with_targets(a, [&](auto const*... more) {
        base::put_loss(a, row, double(layer::formula::value(of_row, of_label, more[row]...)));
        if (a.wants_gradient)
          layer::formula::slopes(of_row, of_label, more[row]..., custom::row<float>{to, columns});
      });
    } else {
      base::put(a, row, 0);
    }
    if (!a.wants_gradient) return;
    float const scale = counts ? base::scale(a, row) : 0;
    for (int i = 0; i < columns; ++i) memory.take_one(row, i, counts ? to[i] * scale : 0);
  }
};

template <>
struct kernel_of<op_kind::row_loss> : one_kernel<row_loss_kernel> {};

}  // namespace pp::cuda

#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif
