// SPDX-License-Identifier: BSL-1.0
//
// The sums of a model's losses over micro-batches, on the device of its last stage.
#pragma once

#include <cstddef>

#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// Enqueues zeros for the losses of all micro-batches, which stay 0 for micro-batches without
/// samples.
///
/// shape: sums: doubles [losses, micro-batches]
inline void clear_losses(pipeline_description const& d, double* sums, cudaStream_t stream) {
  std::size_t const count = std::size_t(d.losses) * std::size_t(d.micro_batches);
  cuda::check(cudaMemsetAsync(sums, 0, count * sizeof(double), stream), "clearing of the losses");
}
/// Enqueues the sums of a micro-batch: each loss is the sum of its rows.
///
/// shape: rows: doubles [loss_rows], overwritten -> sums: doubles [losses, micro-batches], of this
///        micro-batch
/// needs: a ticket for the launches on the stream: see sum_rows_kernel
inline void sum_losses(pipeline_description const& d, job const& j, int micro_batch, double* rows,
                       double* sums, unsigned* ticket, cudaStream_t stream) {
  for (int loss = 0; loss < d.losses; ++loss) {
    int const begin = first_row_of(d, j, loss), end = first_row_of(d, j, loss + 1);
    cuda::launch_body<cuda::sum_rows_kernel>(
        {rows + begin, end - begin, sums + loss * d.micro_batches + micro_batch, ticket}, stream);
  }
}

}  // namespace pp::detail
