// SPDX-License-Identifier: BSL-1.0
//
// Data sets: batches of any number of samples, that is, the spans of a mini-batch, but longer.
// Mini-batches are slices of a data set.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/data/inputs.hpp>

namespace pp::data_set {

/// Name of a list in a batch, whether only the loss reads it, as it does labels, and the number of
/// the input by whose positions it has `per_row` numbers each; -1 if each sample has as many
/// numbers. is_axis: whether it is that input.
struct list_name {
  char const* what;
  std::string_view name{};
  bool of_loss = false, is_axis = false;
  int rows_of = -1;
  std::size_t per_row = 1;
};

/// Calls use(list, per_sample, list_name) for every list of a trainer's batch: inputs, labels and
/// further inputs by name. `list` is a span that may be assigned; `per_sample` is its number of
/// elements per sample.
template <class Trainer, class Batch, class Use>
constexpr void for_each_list(Batch& b, Use const& use) {
  using M = typename Trainer::model;
  auto const list = [&]<int Index>(std::integral_constant<int, Index>) {
    constexpr detail::input_record in = detail::model_tables<M>::inputs[Index];
    constexpr std::size_t per_sample = std::size_t(in.form.elements());
    list_name of{
        "input ",    detail::input_name<M, Index>(),
        in.of_loss,  detail::is_axis(in, Index),
        in.axis - 1, std::size_t(detail::numbers_of_row(detail::model_tables<M>::inputs, Index))};
    if constexpr (Index == 0) of.what = "inputs", of.name = {};
    if constexpr (Index == 0)
      use(b.inputs, per_sample, of);
    else if constexpr (in.is_ids)
      use(b.named_ids[Index], per_sample, of);
    else
      use(b.named_numbers[Index], per_sample, of);
  };
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    (list(std::integral_constant<int, Is>{}), ...);
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
  use(b.labels, std::size_t(Trainer::labels_per_sample),
      list_name{"labels", {}, true, false, detail::model_tables<M>::loss_inputs[0].axis - 1});
}

/// The places of the samples of a data set in its lists. Of an input with lengths, and of labels by
/// its positions, samples lie one behind the other.
struct sample_places {
  /// The number of samples; by input the first id of each, and the end, of one with lengths.
  std::size_t samples = 0;
  std::vector<std::size_t> first[detail::max_inputs]{};

  bool is_ragged(list_name const& of) const {
    return of.rows_of >= 0 && !first[of.rows_of].empty();
  }
  /// The place of sample s in a list; of number `samples` the end.
  std::size_t at(list_name const& of, std::size_t per_sample, std::size_t s) const {
    return is_ragged(of) ? first[of.rows_of][s] * of.per_row : s * per_sample;
  }
};

/// Whether a trainer has the option Lengths.
template <class Trainer>
inline constexpr bool takes_lengths = [] {
  if constexpr (requires { Trainer::compiled::lengths::block; })
    return Trainer::compiled::lengths::block > 0;
  else
    return false;
}();

/// The lengths of an input of a batch by its number.
template <class Batch>
auto& lengths_in(Batch& b, int input) {
  return input == 0 ? b.lengths : b.named_lengths[input];
}

/// Finds the samples of a data set. Unless needs_labels, labels and other inputs of the loss may be
/// missing.
///
/// throws: data_error if a list has another number of samples than the first, for lengths out of
///         range, and for lengths without the option Lengths
template <class Trainer>
sample_places places_in(typename Trainer::batch const& data, bool needs_labels) {
  sample_places places;
  std::size_t const per_sample = std::size_t(Trainer::inputs_per_sample);
  if (!data.micro_batches.empty())
    detail::throw_error<data_error>(
        {"micro_batches: a data set is divided into micro-batches by batches"});
  using M = typename Trainer::model;
  if constexpr (detail::has_images<M>())
    detail::check_images(data.inputs.size(), detail::model_tables<M>::inputs[0].form);
  if (data.lengths.empty() && data.inputs.size() % per_sample != 0)
    detail::throw_error<data_error>(
        {"inputs: expected whole samples of ", per_sample, " numbers, got ", data.inputs.size()});
  std::size_t const n = places.samples =
      data.lengths.empty() ? data.inputs.size() / per_sample : data.lengths.size();
  for_each_list<Trainer>(data, [&](auto const& list, std::size_t numbers, list_name const& of) {
    char const* const quote = of.name.empty() ? "" : "\"";
    if (of.is_axis && !lengths_in(data, of.rows_of).empty()) {
      std::span<int const> const lengths = lengths_in(data, of.rows_of);
      detail::batch_part const part = detail::lengths_part(of.name);
      std::vector<std::size_t>& first = places.first[of.rows_of];
      detail::check_lengths(part, lengths.size(), n);
      detail::for_each_length(part, lengths, list.size(), numbers,
                              [&](int, std::size_t place) { first.push_back(place); });
      first.push_back(list.size());
    }
    if (!takes_lengths<Trainer> && of.rows_of >= 0 && !places.first[of.rows_of].empty())
      detail::throw_error<data_error>({"lengths, micro_batches: they need the option Lengths"});
    std::size_t const expected = places.at(of, numbers, n);
    if (list.size() != expected && !(of.of_loss && !needs_labels && list.empty()))
      detail::throw_error<data_error>({of.what, quote, of.name, quote, ": expected ", expected,
                                       " numbers for ", n, " samples, got ", list.size()});
  });
  return places;
}
/// The number of samples of a data set: see places_in.
template <class Trainer>
std::size_t count(typename Trainer::batch const& data, bool needs_labels) {
  return places_in<Trainer>(data, needs_labels).samples;
}

/// A view of samples [first, first + samples) of a data set, whose places are `places`.
template <class Trainer>
typename Trainer::batch slice(typename Trainer::batch const& data, sample_places const& places,
                              std::size_t first, std::size_t samples) {
  typename Trainer::batch part = data;
  for_each_list<Trainer>(part, [&](auto& list, std::size_t numbers, list_name const& of) {
    // An empty list counts as missing: see places_in.
    std::size_t const begin = places.at(of, numbers, first);
    if (!list.empty())
      list = std::span(list).subspan(begin, places.at(of, numbers, first + samples) - begin);
  });
  for (int i = 0; i < detail::max_inputs; ++i)
    if (!places.first[i].empty()) {
      std::span<int const>& lengths = lengths_in(part, i);
      lengths = lengths.subspan(first, samples);
    }
  return part;
}

/// Samples of a data set in any order, copied into consecutive memory.
template <class Trainer>
class copied_samples {
 public:
  using batch = typename Trainer::batch;

  /// Returns a view of the copies, valid until the next call.
  ///
  /// needs: the data set has all of its lists, or no labels
  batch gather(batch const& data, sample_places const& places,
               std::span<std::size_t const> samples) {
    ids_.clear();
    numbers_.clear();
    batch b = data;
    for (bool const copies :
         {true, false}) {  // a list's address is known when all have been copied
      std::size_t ids = 0, numbers = 0;
      for_each_list<Trainer>(b, [&](auto& list, std::size_t per_sample, list_name const& of) {
        auto const take = [&](auto& buffer, std::size_t& at) {
          std::size_t const from = at;
          for (std::size_t const s : samples) {
            std::size_t const first = places.at(of, per_sample, s),
                              end = places.at(of, per_sample, s + 1);
            if (copies) buffer.insert(buffer.end(), list.data() + first, list.data() + end);
            at += end - first;
          }
          if (!copies) list = std::span(std::as_const(buffer)).subspan(from, at - from);
        };
        if (list.empty()) return;  // missing: see places_in
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(list[0])>, int>)
          take(ids_, ids);
        else
          take(numbers_, numbers);
      });
    }
    for (int i = 0; i < detail::max_inputs; ++i) {
      if (places.first[i].empty()) continue;
      std::span<int const>& lengths = lengths_in(b, i);
      lengths_[i].clear();
      for (std::size_t const s : samples) lengths_[i].push_back(lengths[s]);
      lengths = lengths_[i];
    }
    return b;
  }

 private:
  // List after list: lists of ids, and lists of numbers.
  std::vector<int> ids_;
  std::vector<typename Trainer::element> numbers_;
  std::vector<int> lengths_[detail::max_inputs];  // by input with lengths
};

}  // namespace pp::data_set
