// SPDX-License-Identifier: BSL-1.0
//
// Sampling of tokens from logits in a GPU's memory: only the tokens need to come to the host. Not
// part of <pipe/pipe.hpp>, so that only programs that include it compile its kernel.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>

#include <pipe/backend/cuda/core/launch.cuh>
#include <pipe/backend/cuda/rows/sample_rows.hpp>
#include <pipe/base/device_span.hpp>
#include <pipe/infer/sampling.hpp>

namespace pp {

namespace detail {

/// The kernel's arguments for a row of logits for each token.
///
/// throws: data_error if a setting is out of range, or the logits are no rows
inline cuda::sample_rows_kernel::arguments sampling_arguments(device_span<float const> logits,
                                                              sampling_settings const& s,
                                                              std::uint64_t place,
                                                              device_span<int> tokens) {
  using kernel = cuda::sample_rows_kernel;
  check_sampling(s);
  std::size_t const rows = tokens.size(), columns = rows == 0 ? 0 : logits.size() / rows;
  if (rows * columns != logits.size() || (columns == 0 && rows > 0))
    throw_error<data_error>(
        {"sample: ", logits.size(), " logits are no rows for ", rows, " tokens"});
  if (columns > std::size_t(kernel::most_columns))
    throw_error<data_error>(
        {"sample: expected at most ", kernel::most_columns, " logits in a row, got ", columns});
  kernel::arguments a;
  a.logits = logits.data();
  a.rows = cuda::extent(rows);
  a.columns = int(columns);
  a.top_k = s.top_k;
  a.temperature = s.temperature;
  a.top_p = s.top_p;
  a.seed = s.seed;
  a.place = place;
  a.tokens = tokens.data();
  return a;
}

/// Loads the kernel, once in a process.
inline void prepare_sampling() {
  [[maybe_unused]] static bool const done = (cuda::prepare_body<cuda::sample_rows_kernel>(), true);
}

}  // namespace detail

namespace sampling {

/// Draws a token from each of tokens.size() rows of logits in device memory, behind the work of a
/// stream. Returns before it has happened.
///
/// shape:  logits (rows, columns) -> tokens (rows)
/// law:    row r has the token of sample() with seed s.seed + r, unless the draw is so close to the
///         border of two tokens that rounding decides: probabilities are integers here, the nearest
///         to exp(...) times 2^52, or 2^(62 - bits) for numbers of columns of more than 10 bits
/// law:    the same on every GPU, bit for bit
/// law:    a row without a token has -2 - i: logit i is NaN or +infinity, or -2 - columns: all are
///         -infinity
/// throws: data_error if a setting is out of range or the logits are no rows; pp::error if the
///         launch fails
/// needs:  logits and tokens are in the memory of the current device
inline void sample(device_span<float const> logits, detail::sampling_settings const& s,
                   std::uint64_t place, device_span<int> tokens, cudaStream_t stream = nullptr) {
  detail::prepare_sampling();
  cuda::launch_body<cuda::sample_rows_kernel>(detail::sampling_arguments(logits, s, place, tokens),
                                              stream);
}

}  // namespace sampling

}  // namespace pp
