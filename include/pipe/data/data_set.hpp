// SPDX-License-Identifier: BSL-1.0
//
// Data sets: batches of any number of samples, that is, the spans of a mini-batch, but longer.
// Mini-batches are slices of a data set.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/inputs.hpp>

namespace pp::data_set {

/// Name of a list in a batch, and whether only the loss reads it, as it does labels.
struct list_name {
  char const* what;
  std::string_view name{};
  bool of_loss = false;
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
      use(b.inputs, per_sample, list_name{"inputs"});
    else if constexpr (detail::model_tables<M>::inputs[Index].is_ids)
      use(b.named_ids[Index], per_sample, further);
    else
      use(b.named_numbers[Index], per_sample, further);
  };
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    (list(std::integral_constant<int, Is>{}), ...);
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
  use(b.labels, std::size_t(Trainer::labels_per_sample), list_name{"labels", {}, true});
}

/// Number of samples in a data set. Unless needs_labels, labels and other inputs of the loss may be
/// missing.
///
/// throws: data_error if a list has another number of samples than the first, or for lengths
template <class Trainer>
std::size_t count(typename Trainer::batch const& data, bool needs_labels) {
  if (!data.lengths.empty() || !data.micro_batches.empty())
    detail::throw_error<data_error>(
        {"lengths: a data set is divided by samples padded to the context, without lengths and "
         "micro_batches"});
  std::size_t const per_sample = std::size_t(Trainer::inputs_per_sample),
                    n = data.inputs.size() / per_sample;
  if (data.inputs.size() % per_sample != 0)
    detail::throw_error<data_error>(
        {"inputs: expected whole samples of ", per_sample, " numbers, got ", data.inputs.size()});
  for_each_list<Trainer>(data, [&](auto const& list, std::size_t numbers, list_name const& of) {
    char const* const quote = of.name.empty() ? "" : "\"";
    if (list.size() != n * numbers && !(of.of_loss && !needs_labels && list.empty()))
      detail::throw_error<data_error>({of.what, quote, of.name, quote, ": expected ", n * numbers,
                                       " numbers for ", n, " samples, got ", list.size()});
  });
  return n;
}

/// A view of samples [first, first + samples) of a data set.
template <class Trainer>
typename Trainer::batch slice(typename Trainer::batch const& data, std::size_t first,
                              std::size_t samples) {
  typename Trainer::batch part = data;
  for_each_list<Trainer>(part, [&](auto& list, std::size_t numbers, list_name const&) {
    // An empty list counts as missing: see count.
    if (!list.empty()) list = std::span(list).subspan(first * numbers, samples * numbers);
  });
  return part;
}

}  // namespace pp::data_set
