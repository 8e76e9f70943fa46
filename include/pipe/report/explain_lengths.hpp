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
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/compositions.hpp>
#include <pipe/data/inputs.hpp>
#include <pipe/plan/compiled/expected_epochs.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/train/parts/sample_lengths.hpp>

namespace pp {

namespace detail {

/// Samples whose lengths are in the same part of each context.
struct length_bucket {
  std::vector<int> from{}, to{};  ///< by input
  long samples = 0, tokens = 0;
  work_by_input load{};  ///< of all samples, in full micro-batches
};
/// The buckets of samples, the last input's parts in turn: eighths of the context of one input,
/// quarters of several. each: samples of the context in a full micro-batch
template <class = void>
std::vector<length_bucket> buckets_of(std::span<measured_rows const> inputs, int each) {
  int const most = inputs.size() == 1 ? 8 : 4;
  std::vector<int> parts;  // in rows, by input
  std::vector<length_bucket> buckets(1);
  for (measured_rows const& in : inputs) {
    int const part = parts.emplace_back(in.room.rows_of((in.context + most - 1) / most));
    std::vector<length_bucket> const before = std::move(buckets);
    buckets.clear();
    for (length_bucket const& b : before)
      for (int from = 0; from < in.context; from += part) {
        buckets.push_back(b);
        buckets.back().from.push_back(from == 0 ? 0 : from + 1);
        buckets.back().to.push_back(std::min(from + part, in.context));
      }
  }
  for (std::size_t s = 0; s < inputs[0].lengths.size(); ++s) {
    std::size_t number = 0;
    long tokens = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      int const n = inputs[k].lengths[s], part = parts[k];
      number = number * std::size_t((inputs[k].context + part - 1) / part) +
               std::size_t(n > 0 ? (n - 1) / part : 0);
      tokens += n;
    }
    length_bucket& b = buckets[number];
    ++b.samples;
    b.tokens += tokens;
    b.load.add(inputs, s, each);
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

/// The names of the inputs with lengths, in the order of measure_rows; "tokens" for the first one.
template <class P>
std::vector<std::string> names_of_lengths() {
  using M = typename P::model;
  std::vector<std::string> names;
  for_each_input<M>([&](auto input) {
    if constexpr (is_axis(model_tables<M>::inputs[input()], input()))
      names.emplace_back(names.empty() ? "tokens" : input_name<M, input()>());
  });
  return names;
}
/// Table of the buckets: what the samples of each take of the time of all ranks.
template <class P>
std::string explain_buckets(std::vector<length_bucket> const& buckets,
                            expected_epochs<P> const& expected, std::vector<std::string> columns) {
  double all = 0, tokens = 0;
  for (length_bucket const& b : buckets)
    all += expected.work_of(b.load), tokens += double(b.tokens);
  for (char const* name : {"samples", "of tokens", "a sample", "all samples", "of time"})
    columns.emplace_back(name);
  text_table table(columns);
  for (length_bucket const& b : buckets) {
    if (b.samples == 0) continue;
    double const time = expected.work_of(b.load);
    std::vector<std::string> row;
    for (std::size_t k = 0; k < b.from.size(); ++k)
      row.push_back(std::to_string(b.from[k]) + "-" + std::to_string(b.to[k]));
    for (std::string const& cell :
         {readable_count(b.samples), readable_percent(tokens > 0 ? double(b.tokens) / tokens : 0),
          readable_time(time / double(b.samples)), readable_time(time),
          readable_percent(time / all)})
      row.push_back(cell);
    table.add(row);
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
  std::string text =
      table.str() +
      "an epoch: simulated with the schedule; by slots: what ranks wait for room between stages\n";
  if (double const padded = expected.sent_padded(); padded > 0)
    text += "between ranks: " + readable_bytes(long(expected.sent())) +
            " of values and gradients in an epoch, " + readable_bytes(long(padded)) + " padded\n";
  return text + fastest;
}

}  // namespace detail

/// What samples of these lengths are expected to cost P, a Pipeline or Planned with Lengths, as
/// text: the share of padding; the time of the samples by their length; and an epoch as its samples
/// come, by length, by tokens and packed, beside padded samples: shuffled, and simulated with the
/// schedule. lengths: of each sample of a data set, in rows; of a model with several inputs of
/// lengths a list for each, in their order
///
/// throws: data_error for lists of other inputs or of different numbers of samples, no lengths, or
///         one above the context
template <class P, std::convertible_to<std::span<int const>>... More>
std::string explain_lengths(std::span<int const> lengths, More const&... more) {
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
    using compiled = typename P::compiled;
    std::span<int const> const given[] = {lengths, more...};
    expected_epochs<compiled> const expected(measure_rows<compiled>("explain_lengths", given));
    std::span<measured_rows const> const inputs = expected.inputs();
    padding_counts const all = count_padding(inputs);
    return explain_padding(all, compiled::lengths::block) +
           explain_buckets(buckets_of(inputs, compiled::samples), expected, names_of_lengths<P>()) +
           "a sample: expected time of forward and backward on all stages, one after the "
           "other\n\n" +
           explain_compositions(expected, all.tokens);
  }
}

}  // namespace pp
