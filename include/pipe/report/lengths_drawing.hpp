// SPDX-License-Identifier: BSL-1.0
//
// A planned mini-batch of samples of several lengths as a drawing: each micro-batch takes the time
// of its own rows.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/data/compositions.hpp>
#include <pipe/plan/compiled/expected_epochs.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/drawing.hpp>

namespace pp {

namespace detail {

/// The shares of padding, as the note of a drawing.
template <class = void>
std::string padding_note(padding_counts const& of) {
  return "padding " + readable_percent(of.of_context()) + " of padded samples, " +
         readable_percent(of.of_blocks()) + " of whole blocks";
}

/// The micro-batches of one accumulation, of samples in their order. counts: samples of each, or
/// none: room.each
///
/// throws: data_error for more micro-batches, samples or rows than there is room for
template <class = void>
composed_epoch one_accumulation(std::span<int const> lengths, std::span<int const> counts,
                                composition_room const& room) {
  composed_epoch made{{}, {counts.begin(), counts.end()}, std::size_t(room.micro_batches)};
  made.order.resize(lengths.size());
  std::iota(made.order.begin(), made.order.end(), std::size_t(0));
  for (std::size_t i = 0, each = std::size_t(room.each); counts.empty() && i < lengths.size();
       i += each)
    made.counts.push_back(int(std::min(each, lengths.size() - i)));
  long samples = 0;
  for (int const count : made.counts) samples += count;
  if (made.size() != 1 || samples != long(lengths.size()) ||
      *std::min_element(made.counts.begin(), made.counts.end()) < 1)
    throw_error<data_error>({"of_lengths: expected at most ", room.micro_batches,
                             " micro-batches, of ", lengths.size(), " samples in all, got ",
                             made.counts.size(), " of ", samples});
  std::size_t sample = 0;
  for (std::size_t mb = 0; mb < made.counts.size(); ++mb) {
    long rows = 0;
    for (int s = 0; s < made.counts[mb]; ++s)
      rows += room.of_micro_batch.rows_of(lengths[sample++]);
    if (rows > room.of_micro_batch.rows || made.counts[mb] > room.of_micro_batch.samples)
      throw_error<data_error>({"of_lengths: micro-batch ", mb, " has ", made.counts[mb],
                               " samples with ", rows, " rows, and there is room for ",
                               room.of_micro_batch.samples, " with ", room.of_micro_batch.rows});
  }
  return made;
}

}  // namespace detail

namespace drawings {

/// The planned mini-batch of samples of these lengths, in rows, of P, a Pipeline or Planned with
/// Lengths; of one accumulation. counts: samples of each micro-batch, as set_micro_batches has
/// them; none: MicroBatchSize. Times are those that explain_lengths expects, memory is that of full
/// micro-batches, as it is planned.
///
/// throws: data_error for a model with several inputs of lengths, and for lengths and counts that a
///         step refuses
template <class P>
drawing of_lengths(std::span<int const> lengths, std::span<int const> counts = {},
                   std::string title = std::string(detail::type_name<typename P::model>()) +
                                       ", expected") {
  using compiled = typename P::compiled;
  if constexpr (compiled::lengths::block == 0) {
    static_assert(
        detail::accepted<decltype(detail::diagnose_use_of_lengths<
                                  typename P::model, typename compiled::lengths>())>::value);
    return {};
  } else {
    detail::expected_epochs<compiled> const expected(
        detail::measure_rows<compiled>("of_lengths", std::span(&lengths, 1)));
    auto problem = expected.full();
    problem.loads =
        expected.loads(detail::one_accumulation(lengths, counts, detail::room_of<compiled>()));
    auto const when = schedules::simulate(problem, compiled::table());
    return of_table(problem, compiled::table(), when,
                    {std::move(title), "ns", "B",
                     detail::padding_note(detail::count_padding(expected.inputs()))});
  }
}

}  // namespace drawings

}  // namespace pp
