// SPDX-License-Identifier: BSL-1.0
//
// The option for what replicas divide among them instead of each having all of it.
#pragma once

#include <type_traits>

#include <pipe/optim/optimizer.hpp>
#include <pipe/plan/options/averaging.hpp>
#include <pipe/plan/options/gradient_accumulation.hpp>
#include <pipe/plan/options/micro_batches.hpp>
#include <pipe/plan/options/optimizer.hpp>
#include <pipe/plan/options/schedule.hpp>
#include <pipe/plan/options/stages.hpp>
#include <pipe/plan/options/transport.hpp>

namespace pp {

namespace option_family {
struct zero;
}

/// What replicas (see Mpi, Nccl) divide among them, each of which otherwise has all of it. Default:
/// ZeRO<0>, nothing. Rajbhandari et al., 2020.
///
/// 1: The optimizer's state. Each replica updates its part of the parameters, and gives it to the
///    others. A step sends as much as without; between GPUs, which have level 1 alone, half as much
///    again, as each has all gradients.
/// 2: Gradients, too, of parameters of more than 32,768 elements that are not shared by layers: a
///    replica keeps its part of the sum. The same is sent.
/// 3: Parameters, too: they are brought together for the launches that read them, layer by layer,
///    in forward and again in backward of each micro-batch: an accumulation of M sends 1 + 2 M
///    times the parameters, in place of twice.
///
/// With several micro-batches in an accumulation (see GradientAccumulation) a replica adds up their
/// gradients where they are whole, and gives the others their parts after the last backward of each
/// stage: they cannot be divided sooner, since each replica's sum is another one until the
/// accumulation ends, and the order of additions is that of ZeRO<0>. So level 2 then has the memory
/// of level 1, and level 3 that of level 2. From level 2 on the optimizer works by element.
///
/// law: loss, gradient norm and parameters have the bits of ZeRO<0>
template <int Level>
struct ZeRO {
  using family = option_family::zero;
  static constexpr int level = Level;
};

namespace detail {

/// The level that a pipeline has: none where the transport knows no replicas, or none that divide.
template <class Option, class Transport>
using zero_of = std::conditional_t<connects_replicas<Transport>, Option, ZeRO<0>>;

}  // namespace detail

/// The family of divisions among replicas.
struct option_family::zero : detail::any_family {
  using fallback = ZeRO<0>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<zero>;
    using optimizer = typename Options::template get<option_family::optimizer>;
    using averages = typename Options::template get<averaging>;
    using connection = typename Options::template get<option_family::transport>;
    using sum = typename Options::template get<option_family::sum>;
    using by = detail::replicated_by<typename Options::template get<stages>,
                                     typename Options::template get<schedule>>;
    if constexpr (option::level < 0 || option::level > 3)
      return detail::diagnosis_of<wrong::zero_has_levels_0_to_3, option>();
    else if constexpr (option::level > 1 &&
                       detail::device_transport<typename connection::transport>)
      return detail::diagnosis_of<wrong::gradients_are_divided_on_the_host, option, connection>();
    else if constexpr (option::level > 1 && !std::is_void_v<by> &&
                       detail::connects_replicas<typename connection::transport>)
      return detail::diagnosis_of<wrong::divided_gradients_are_of_one_rank, option, by>();
    else if constexpr (option::level > 1 && custom::tensor_optimizer<optimizer>)
      return detail::diagnosis_of<wrong::divided_gradients_are_updated_by_element, option,
                                  optimizer>();
    else if constexpr (sum::room > 1 && detail::device_transport<typename connection::transport>)
      return detail::diagnosis_of<wrong::replicas_share_evenly, sum, connection>();
    else if constexpr (sum::room > 1 && option::level > 2)
      return detail::diagnosis_of<wrong::replicas_share_evenly, sum, option>();
    else if constexpr (option::level > 2 && averages::averages)
      return detail::diagnosis_of<wrong::divided_parameters_have_no_averages, option, averages>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

namespace detail {

/// The diagnosis of a call that accumulates mini-batches in a pipeline with these options.
template <class Sum, class Zero, class MicroBatches>
constexpr auto diagnose_accumulation_of() {
  if constexpr (Sum::accumulations > 1)
    return detail::diagnosis_of<wrong::mini_batch_is_accumulated_already, Sum>();
  else if constexpr (Zero::level > 1 && MicroBatches::value == 1)
    return detail::diagnosis_of<wrong::divided_gradients_are_of_one_micro_batch, Zero,
                                MicroBatches>();
  else
    return std::type_identity<detail::nothing_wrong>{};
}

}  // namespace detail

}  // namespace pp
