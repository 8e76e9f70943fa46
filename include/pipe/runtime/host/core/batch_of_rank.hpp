// SPDX-License-Identifier: BSL-1.0
//
// The mini-batch as one rank reads it. Full micro-batches are read in the caller's memory; a partly
// filled one is copied to the rank's arena and padded with zeros, so that kernels always process
// the planned number of samples. Where values have 16 bits, each action of the first chunk converts
// the numbers of its micro-batch, into the same place.
#pragma once

#include <cstddef>
#include <cstring>

#include <pipe/base/config.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/job.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// Addresses of a run's inputs and labels for one rank.
///
/// needs: the run and its arrays stay valid as long as this view
struct batch_of_rank {
  detail::pipeline_description const& d;
  detail::job const& run;
  detail::rank_description const& rank;
  char* arena;  ///< start of the rank's memory

  /// The caller's array of an input; of the labels for input number d.inputs. Null if none was
  /// given.
  void const* given(int input) const {
    return input < d.inputs ? run.batch.input[input] : run.batch.label;
  }

  /// The samples of an input in micro-batch mb. Null if the rank does not read the input, or no
  /// array was given.
  char* at(int input, int mb) const {
    if (rank.staging[input] < 0 || given(input) == nullptr) return nullptr;
    if (d.is_copied_input(input) ||
        (samples_in(d, run, mb) < d.samples && run.batch.place == detail::data_place::host))
      return arena + rank.staging[input];
    // Not const, because region_bases has one type of pointer for regions read and written.
    return const_cast<char*>(static_cast<char const*>(given(input))) + mb * d.bytes_of(input);
  }

  /// Sets the regions of inputs and labels.
  void set(detail::region_bases& bases, int mb) const {
    for (int i = 0; i < d.inputs; ++i) bases.set(detail::input_region(i), at(i, mb));
    bases.set(detail::region::label, at(d.inputs, mb));
  }

  /// Converts the inputs of a micro-batch that kernels read as values of 16 bits; absent samples
  /// are zeros.
  template <class T>
  void convert(detail::backend_calls<T> const& calls, int mb) const {
    for (int i = 0; i < d.inputs; ++i) {
      char* const to = d.is_copied_input(i) ? at(i, mb) : nullptr;
      if (to == nullptr) continue;
      long const bytes = d.bytes_of(i), each = bytes / calls.value_bytes,
                 real = each / d.samples * samples_in(d, run, mb);
      calls.to_values(static_cast<T const*>(given(i)) + mb * each, real, to);
      std::memset(to + real * calls.value_bytes, 0, std::size_t(bytes - real * calls.value_bytes));
    }
  }

  /// Copies the partly filled micro-batch, if any, to the arena and pads it with zeros.
  [[gnu::cold]] void stage_partial() const {
    if (run.batch.place != detail::data_place::host) return;
    int const mb = run.batch.samples / d.samples, real = run.batch.samples % d.samples;
    for (int i = 0; i <= d.inputs && real > 0; ++i) {
      char* const to = d.is_copied_input(i) ? nullptr : at(i, mb);
      if (to == nullptr) continue;
      // Bytes of a full micro-batch, and of its real samples.
      long const bytes = d.bytes_of(i), taken = bytes / d.samples * real;
      std::memcpy(to, static_cast<char const*>(given(i)) + mb * bytes, std::size_t(taken));
      std::memset(to + taken, 0, std::size_t(bytes - taken));
    }
  }
};

}  // namespace pp::host
PIPE_OPTIMIZED_END
