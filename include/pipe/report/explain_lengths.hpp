// SPDX-License-Identifier: BSL-1.0
//
// The lengths of a data set's samples as text: what samples of each length are expected to cost a
// pipeline with Lengths, how long its ranks wait for unequal micro-batches, and which composition
// of mini-batches is expected to be the fastest. It needs neither data nor a trainer object.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/compositions.hpp>
#include <pipe/plan/compiled/expected_epochs.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/text_table.hpp>

namespace pp {

namespace detail {

/// Samples whose lengths are in the same eighth of the context.
struct length_bucket {
  int from = 0, to = 0;
  long samples = 0, tokens = 0;
  double rows = 0, squares = 0;  ///< of all samples, in full micro-batches
};
template <class = void>
std::vector<length_bucket> buckets_of(std::span<int const> lengths, composition_room const& room) {
  constexpr int most = 8;
  row_room const of = room.of_micro_batch;
  int const eighth = of.rows_of((room.context + most - 1) / most);
  std::vector<length_bucket> buckets;
  for (int from = 0; from < room.context; from += eighth)
    buckets.push_back({from == 0 ? 0 : from + 1, std::min(from + eighth, room.context)});
  for (int const n : lengths) {
    length_bucket& b = buckets[std::size_t(n > 0 ? (n - 1) / eighth : 0)];
    double const rows = of.rows_of(n);
    ++b.samples;
    b.tokens += n;
    b.rows += rows / of.rows;
    b.squares += rows * rows / (double(of.rows) * room.context);
  }
  return buckets;
}

/// A time in nanoseconds with three digits: "84.1 us", "5.61 ms", "28.8 s".
template <class = void>
std::string readable_time(double ns) {
  char const* const units[] = {"us", "ms", "s"};
  double value = ns * 1e-3;
  int unit = 0;
  for (; value >= 999.5 && unit < 2; ++unit) value *= 1e-3;
  return readable_real(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0) + " " + units[unit];
}

/// Table of the buckets: what the samples of each take of the time of all ranks.
template <class P>
std::string explain_buckets(std::vector<length_bucket> const& buckets,
                            expected_epochs<P> const& expected) {
  double all = 0, tokens = 0;
  for (length_bucket const& b : buckets)
    all += expected.work_of(b.rows, b.squares), tokens += double(b.tokens);
  text_table table({"tokens", "samples", "of tokens", "a sample", "all samples", "of time"});
  for (length_bucket const& b : buckets) {
    if (b.samples == 0) continue;
    double const time = expected.work_of(b.rows, b.squares);
    table.add({std::to_string(b.from) + "-" + std::to_string(b.to), readable_count(b.samples),
               readable_percent(tokens > 0 ? double(b.tokens) / tokens : 0),
               readable_time(time / double(b.samples)), readable_time(time),
               readable_percent(time / all)});
  }
  return table.str();
}

/// Samples, tokens and the shares of padding.
template <class = void>
std::string explain_padding(padding_counts const& all, int block) {
  return counted(all.samples, "sample") + " of " + std::to_string(all.context) + " positions, " +
         readable_count(all.tokens) + " tokens: " + readable_percent(all.of_context()) +
         " padding, " + readable_percent(all.of_blocks()) + " in blocks of " +
         std::to_string(block) + "\n";
}

/// An epoch with the name of its composition.
struct named_epoch {
  char const* name;
  expected_epoch of;
};

/// Which of the compositions is expected to be the fastest; several within 2 %.
template <class = void>
std::string explain_fastest_epoch(std::vector<named_epoch> const& all) {
  double best = all[0].of.time;
  for (named_epoch const& e : all) best = std::min(best, e.of.time);
  std::string names;
  for (named_epoch const& e : all)
    if (e.of.time <= 1.02 * best) names += (names.empty() ? "" : ", ") + std::string(e.name);
  bool const are_several = names.find(',') != names.npos;
  return names + (are_several ? " take the least time, within 2 %" : " takes the least time") +
         "\n";
}

/// Table of the epochs by composition.
template <class P>
std::string explain_compositions(expected_epochs<P> const& expected, long tokens) {
  std::vector<named_epoch> all{{"as they come", expected.of(composition::as_they_come)},
                               {".by_length", expected.of(composition::by_length)}};
  if (expected.go_by_tokens()) {
    all.push_back({".by_tokens", expected.of(composition::by_tokens)});
    all.push_back({".packed", expected.of(composition::packed)});
  }
  std::string const fastest = explain_fastest_epoch(all);
  all.push_back({"padded, without Lengths", expected.padded()});
  text_table table({"composition", "steps", "a step", "an epoch", "tokens/s", "bubble", "by slots"},
                   {0});
  for (auto const& [name, e] : all)
    table.add({name, readable_count(e.steps), readable_time(e.time / double(e.steps)),
               readable_time(e.time), readable_count(long(double(tokens) / e.time * 1e9)),
               readable_percent(e.bubble), readable_percent(e.waiting)});
  return table.str() +
         "an epoch: simulated with the schedule; by slots: what ranks wait for room between "
         "stages\n" +
         fastest;
}

}  // namespace detail

/// What samples of these lengths are expected to cost P, a Pipeline or Planned with Lengths, as
/// text: the share of padding; the time of the samples by their length; and an epoch as its samples
/// come, by length, by tokens and packed, beside padded samples: shuffled, and simulated with the
/// schedule. lengths: of each sample of a data set, in rows
///
/// throws: data_error for no lengths, one above the context, or a model with lengths of another
///         input than the first
template <class P>
std::string explain_lengths(std::span<int const> lengths) {
  using namespace detail;
  if constexpr (!requires { typename P::compiled::lengths; }) {
    static_assert(
        accepted<decltype(diagnosis_of<wrong::only_a_pipeline_can_be_explained, P>())>::value);
    return {};
  } else if constexpr (P::compiled::lengths::block == 0) {
    static_assert(
        accepted<decltype(diagnose_use_of_lengths<typename P::model,
                                                  typename P::compiled::lengths>())>::value);
    return {};
  } else {
    require_lengths<typename P::compiled>("explain_lengths", lengths);
    expected_epochs<typename P::compiled> const expected(lengths);
    padding_counts const all = count_padding(lengths, expected.room());
    return explain_padding(all, P::compiled::lengths::block) +
           explain_buckets(buckets_of(lengths, expected.room()), expected) +
           "a sample: expected time of forward and backward on all stages, one after the "
           "other\n\n" +
           explain_compositions(expected, all.tokens);
  }
}

}  // namespace pp
