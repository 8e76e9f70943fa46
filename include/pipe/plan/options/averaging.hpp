// SPDX-License-Identifier: BSL-1.0
//
// The option for exponential moving averages of the parameters.
#pragma once

#include <pipe/nn/ratio.hpp>
#include <pipe/plan/options/family.hpp>

namespace pp {

namespace option_family {
struct averaging;
}

/// Keeps an exponential moving average of every trained parameter, with decay Numerator/Denominator
/// in [0, 1) (default: none). After each step average = decay * average + (1 - decay) * parameter;
/// after the first step average = parameter. As torch.optim.swa_utils.AveragedModel with
/// get_ema_multi_avg_fn(decay).
template <auto Numerator, int Denominator = 1>
struct Averaging {
  using quotient = detail::ratio<Numerator, Denominator>;
  using family = option_family::averaging;
  static constexpr bool averages = true, of_integers = quotient::of_integers,
                        in_range = quotient::at_least_zero() && quotient::numerator < Denominator;
  static constexpr double decay = in_range ? quotient::template value<double>() : 0;
  using found = wrong::Found<quotient::numerator, Denominator>;
};
/// No averages of parameters are kept (default).
struct NoAveraging {
  using family = option_family::averaging;
  static constexpr bool averages = false, of_integers = true, in_range = true;
  static constexpr double decay = 0;
};

/// The family of averaging: a decay of two integers in [0, 1), or none.
struct option_family::averaging : detail::any_family {
  using fallback = NoAveraging;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<averaging>;
    if constexpr (!option::of_integers)
      return detail::diagnosis_of<wrong::ratio_is_written_as_two_integers, option>();
    else if constexpr (!option::in_range)
      return detail::diagnosis_of<wrong::decay_of_averages_is_out_of_range, option,
                                  typename option::found>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

namespace detail {

/// The diagnosis of a use of averages in a pipeline with this option.
template <class Averages>
constexpr auto diagnose_use_of_averages() {
  if constexpr (Averages::averages)
    return std::type_identity<detail::nothing_wrong>{};
  else
    return detail::diagnosis_of<wrong::pipeline_keeps_no_averages, Averages>();
}

}  // namespace detail

}  // namespace pp
