// SPDX-License-Identifier: BSL-1.0
//
// Data sets: batches of any number of samples, that is, the spans of a mini-batch, but longer.
// Mini-batches are slices of a data set.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/data/inputs.hpp>

namespace pp::data_set {

/// Name of a list in a batch, whether only the loss reads it, as it does labels, and whether it has
/// an element for each position of the first input, if this is token ids.
struct list_name {
  char const* what;
  std::string_view name{};
  bool of_loss = false, by_position = false;
};

/// Calls use(list, per_sample, list_name) for every list of a trainer's batch: inputs, labels and
/// further inputs by name. `list` is a span that may be assigned; `per_sample` is its number of
/// elements per sample.
template <class Trainer, class Batch, class Use>
constexpr void for_each_list(Batch& b, Use const& use) {
  using M = typename Trainer::model;
  auto const list = [&]<int Index>(std::integral_constant<int, Index>) {
    constexpr std::size_t per_sample =
        std::size_t(detail::model_tables<M>::inputs[Index].form.elements());
    list_name const further{"input ", detail::input_name<M, Index>(),
                            detail::model_tables<M>::inputs[Index].of_loss};
    if constexpr (Index == 0)
      use(b.inputs, per_sample,
          list_name{"inputs", {}, false, detail::model_tables<M>::inputs[0].is_ids});
    else if constexpr (detail::model_tables<M>::inputs[Index].is_ids)
      use(b.named_ids[Index], per_sample, further);
    else
      use(b.named_numbers[Index], per_sample, further);
  };
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    (list(std::integral_constant<int, Is>{}), ...);
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
  constexpr bool of_positions =
      M::graph.loss().axis == 1 && Trainer::labels_per_sample == Trainer::inputs_per_sample;
  use(b.labels, std::size_t(Trainer::labels_per_sample),
      list_name{"labels", {}, true, of_positions});
}

/// Number of samples in a data set. Unless needs_labels, labels and other inputs of the loss may be
/// missing.
///
/// throws: data_error if a list has another number of samples than the first, for lengths out of
///         range or that do not add up, or for micro_batches
template <class Trainer>
std::size_t count(typename Trainer::batch const& data, bool needs_labels) {
  if (!data.micro_batches.empty())
    detail::throw_error<data_error>(
        {"micro_batches: a data set is divided into micro-batches by batches"});
  std::size_t const per_sample = std::size_t(Trainer::inputs_per_sample);
  std::size_t n = data.inputs.size() / per_sample;
  if (!data.lengths.empty()) {
    n = data.lengths.size();
    detail::check_lengths(data.lengths, int(per_sample), data.inputs.size());
  } else if (data.inputs.size() % per_sample != 0) {
    detail::throw_error<data_error>(
        {"inputs: expected whole samples of ", per_sample, " numbers, got ", data.inputs.size()});
  }
  for_each_list<Trainer>(data, [&](auto const& list, std::size_t numbers, list_name const& of) {
    char const* const quote = of.name.empty() ? "" : "\"";
    std::size_t const expected = of.by_position ? data.inputs.size() : n * numbers;
    if (list.size() != expected && !(of.of_loss && !needs_labels && list.empty()))
      detail::throw_error<data_error>({of.what, quote, of.name, quote, ": expected ", expected,
                                       " numbers for ", n, " samples, got ", list.size()});
  });
  return n;
}

/// The places of samples in the lists of a data set.
struct sample_places {
  /// Elements of a list, from the first one.
  struct range {
    std::size_t first = 0, count = 0;
  };
  std::span<int const> lengths;             // of a data set with lengths; else empty
  std::vector<std::size_t> first_position;  // of each sample, and the end, if there are lengths

  explicit sample_places(std::span<int const> of_samples) : lengths(of_samples) {
    if (lengths.empty()) return;
    first_position.reserve(lengths.size() + 1);
    first_position.push_back(0);
    for (int n : lengths) first_position.push_back(first_position.back() + std::size_t(n));
  }
  /// The elements of samples [first, first + samples) in a list. by_position: of a list with an
  /// element for each position
  range of(std::size_t first, std::size_t samples, std::size_t per_sample, bool by_position) const {
    if (lengths.empty() || !by_position) return {first * per_sample, samples * per_sample};
    std::size_t const begin = first_position[first];
    return {begin, first_position[first + samples] - begin};
  }
};

/// A view of samples [first, first + samples) of a data set, whose places are `places`.
template <class Trainer>
typename Trainer::batch slice(typename Trainer::batch const& data, std::size_t first,
                              std::size_t samples, sample_places const& places) {
  typename Trainer::batch part = data;
  if (!data.lengths.empty()) part.lengths = data.lengths.subspan(first, samples);
  for_each_list<Trainer>(part, [&](auto& list, std::size_t numbers, list_name const& name) {
    // An empty list counts as missing: see count.
    if (list.empty()) return;
    auto const of = places.of(first, samples, numbers, name.by_position);
    list = std::span(list).subspan(of.first, of.count);
  });
  return part;
}

}  // namespace pp::data_set
