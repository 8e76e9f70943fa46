// SPDX-License-Identifier: BSL-1.0
//
// Copying of parameters between trainers in memory: the encoder of an autoencoder, a pretrained
// body, a teacher. Parameters are matched by name, as in files.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/together.hpp>
#include <pipe/weights/weights.hpp>

namespace pp {

namespace detail {

/// Copies a parameter to one of the same file shape; layouts in memory may differ.
///
/// needs: the two do not overlap, and both are in this process
template <class From, class To>
void copy_parameter(named_parameter<From> const& from, named_parameter<To> const& to) noexcept {
  for_each_run(to, [&](std::size_t at, std::size_t first, std::size_t stride, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i)
      to.values[first + i * stride] = To(from.values[from.number_at(at + i)]);
  });
}

}  // namespace detail

/// Copies the parameters of `from` to those of `to` with the same names and file shapes. `names`
/// maps names of `to` to names of `from`. Stages, schedule, optimizer, backend and precision of the
/// two trainers may differ.
///
///     copy_weights(autoencoder, encoder, load_policy::partial);
///     copy_weights(classifier, detector, load_policy::partial, {{"body.", "encoder."}});
///
/// Averages of `to` (see Averaging) are set to the averages of `from`, or to its parameters if
/// `from` has no averages. Accumulated gradients of `to` are discarded. If ranks of either trainer
/// are in several processes, all processes call this function, and one parameter at a time is sent
/// to where it is needed.
///
/// law: all or nothing: if copy_weights throws, it throws in all processes, and nothing was written
/// throws: as load_weights, with `from` for the file; error if both are the same trainer
template <detail::has_named_parameters From, detail::has_named_parameters To>
load_report copy_weights(From& from, To& to, load_policy policy = load_policy::strict,
                         name_map const& names = {}) {
  if (static_cast<void const*>(&from) == static_cast<void const*>(&to))
    throw error("copy_weights: source and destination are the same trainer");
  auto source = detail::named_parameters(from);
  auto target = detail::named_parameters(to);
  auto const target_averages = detail::averages_of(to);
  using source_parameter = typename decltype(source)::value_type;
  using target_parameter = typename decltype(target)::value_type;

  detail::weights_source const what{"to copy", "the source"};
  detail::weight_pairs found = detail::pair_weights<typename target_parameter::value_type>(
      target, source, policy, detail::source_names(names), what,
      [&](detail::weight_sources const& pair, target_parameter const& t) {
        source_parameter const& s = source[pair.tensors[0]];
        detail::require_law(s);
        return pair.tensors.size() > 1 ? "only tensors of a file are joined"
               : pair.transposed       ? "only tensors of a file are transposed"
                                       : detail::misfit_of_shape(t.shape, s.shape);
      });
  auto const values = detail::list_of(from);
  auto const views = detail::list_of(to);
  auto averages = values;
  constexpr bool copies_averages = detail::keeps_averages<From> && detail::keeps_averages<To>;
  if constexpr (copies_averages) averages = from.averaged();

  // All numbers are checked, each in the process that has it, before the first is written.
  detail::row_list<detail::kept_text> problems;
  using number = typename target_parameter::value_type;
  auto const check = [&](std::string_view name, auto const& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (libm::isfinite(numbers[i]) && !libm::isfinite(number(numbers[i])))
        return void(problems.push_back(detail::joined_text(
            {"parameter ", detail::quotation(name), ": number ", i, " is too large"})));
  };
  for (detail::weight_sources const& pair : found.pairs) {
    std::size_t const s = pair.tensors[0];
    detail::for_each_part(from, values[s], [&](auto const& part) { check(source[s].name, part); });
    if (copies_averages) check(source[s].name, averages[s].values);
  }
  constexpr char const* otherwise = "the weights to copy do not fit the model in another process";
  detail::together<data_error>(detail::agreement_of(to), otherwise, "", [&] {
    detail::together<data_error>(detail::agreement_of(from), otherwise, "",
                                 [&] { detail::require_fit(what, problems); });
  });

  std::vector<typename source_parameter::value_type> room;
  for (detail::weight_sources const& pair : found.pairs) {  // all numbers are checked from here on
    std::size_t const t = pair.parameter, s = pair.tensors[0];
    source[s].values = detail::values_in_all(from, values[s], room);
    if (!target[t].elsewhere)
      detail::set_values(to, views[t], [&](auto const& values_there) {
        target[t].values = values_there;
        detail::copy_parameter(source[s], target[t]);
      });
    if (copies_averages) source[s].values = detail::values_in_all(from, averages[s], room);
    // A parameter that is not trained, or is in another process, has no average here.
    if (target_averages.empty() || target_averages[t].data() == target[t].values.data()) continue;
    target[t].values = target_averages[t];
    detail::copy_parameter(source[s], target[t]);
  }
  to.parameters_changed();
  return std::move(found.report);
}

}  // namespace pp
