// SPDX-License-Identifier: BSL-1.0
//
// Settings by the names of other frameworks, `{.lr = 0.1}`. For an unknown name in braces compilers
// only report that no constructor matches; so there is a constructor that accepts these names, and
// reports the library's name for each.
#pragma once

#include <cstdint>
#include <type_traits>

#include <pipe/base/text.hpp>
#include <pipe/graph/diagnostics.hpp>

namespace pp {

namespace wrong {
/// A word of the message: what to write in place of a setting that there is not.
template <class... What>
struct UseInstead;
}  // namespace wrong

namespace instead {
// Incomplete types, whose names are words of the message.
struct optimizer_and_in_it_learning_rate;
struct optimizer_and_in_it_weight_decay;
struct optimizer_and_in_it_momentum;
struct optimizer_and_in_it_beta1_and_beta2;
struct optimizer_and_in_it_epsilon;
struct MicroBatchSize_and_MicroBatches;
struct HostThreads_among_the_options;
struct Host_or_Cuda_among_the_options;
struct a_loop_around_step;
struct clip_norm;
struct learning_rate;
struct learning_rate_factor;
struct beta1;
struct beta2;
struct beta1_and_beta2;
struct epsilon;
struct another_optimizer;
}  // namespace instead

namespace detail {

/// A setting that Owner lacks: giving it a value is the error there_is_no_such_setting.
template <class Owner, Text Name, class Instead>
struct no_such_setting {
  constexpr no_such_setting() = default;
  template <class... Values>
    requires(sizeof...(Values) > 0)
  constexpr no_such_setting(Values const&...) {
    using name = typename decltype(spell_text<Name>())::type;
    static_assert(accepted<decltype(diagnosis_of<wrong::there_is_no_such_setting, Owner, name,
                                                 wrong::UseInstead<Instead>>())>::value);
  }
};
/// A setting that Owner has.
struct number_setting {
  constexpr number_setting() = default;
  constexpr number_setting(double) {}
};
/// A setting that some optimizers have: an error for an Owner without it.
template <class Owner, bool Has, Text Name>
using setting_if = std::conditional_t<Has, number_setting,
                                      no_such_setting<Owner, Name, instead::another_optimizer>>;

// Whether an optimizer has a setting, by the names of its members.
template <class O>
concept has_momentum = requires(O o) { o.momentum; };
template <class O>
concept has_dampening = requires(O o) { o.dampening; };
template <class O>
concept has_beta1 = requires(O o) { o.beta1; };
template <class O>
concept has_beta2 = requires(O o) { o.beta2; };
template <class O>
concept has_epsilon = requires(O o) { o.epsilon; };
template <class O>
concept has_weight_decay = requires(O o) { o.weight_decay; };
template <class O>
concept has_nesterov = requires(O o) { o.nesterov; };
template <class O>
concept has_amsgrad = requires(O o) { o.amsgrad; };

/// The settings of all optimizers, in an order compatible with each, as designated initializers
/// require.
template <class O>
struct optimizer_elsewhere {
  number_setting learning_rate{};
  no_such_setting<O, "lr", instead::learning_rate> lr{};
  setting_if<O, has_momentum<O>, "momentum"> momentum{};
  setting_if<O, has_dampening<O>, "dampening"> dampening{};
  setting_if<O, has_beta1<O>, "beta1"> beta1{};
  setting_if<O, has_beta2<O>, "beta2"> beta2{};
  no_such_setting<O, "beta_1", instead::beta1> beta_1{};
  no_such_setting<O, "beta_2", instead::beta2> beta_2{};
  no_such_setting<O, "betas", instead::beta1_and_beta2> betas{};
  setting_if<O, has_epsilon<O>, "epsilon"> epsilon{};
  no_such_setting<O, "eps", instead::epsilon> eps{};
  setting_if<O, has_weight_decay<O>, "weight_decay"> weight_decay{};
  setting_if<O, has_nesterov<O>, "nesterov"> nesterov{};
  setting_if<O, has_amsgrad<O>, "amsgrad"> amsgrad{};
};

/// The settings of a trainer, with those of other frameworks in between.
template <class Trainer, class Settings>
struct settings_elsewhere {
  std::uint64_t seed = 0;
  no_such_setting<Trainer, "lr", instead::optimizer_and_in_it_learning_rate> lr{};
  no_such_setting<Trainer, "learning_rate", instead::optimizer_and_in_it_learning_rate>
      learning_rate{};
  no_such_setting<Trainer, "betas", instead::optimizer_and_in_it_beta1_and_beta2> betas{};
  no_such_setting<Trainer, "eps", instead::optimizer_and_in_it_epsilon> eps{};
  no_such_setting<Trainer, "momentum", instead::optimizer_and_in_it_momentum> momentum{};
  no_such_setting<Trainer, "weight_decay", instead::optimizer_and_in_it_weight_decay>
      weight_decay{};
  no_such_setting<Trainer, "batch_size", instead::MicroBatchSize_and_MicroBatches> batch_size{};
  no_such_setting<Trainer, "epochs", instead::a_loop_around_step> epochs{};
  optimizer_elsewhere<decltype(Settings::optimizer)> optimizer{};
  decltype(Settings::learning_rate_factor) learning_rate_factor{};
  no_such_setting<Trainer, "learning_rate_scheduler", instead::learning_rate_factor>
      learning_rate_scheduler{};
  double clip_value = 0, clip_norm = 0;
  no_such_setting<Trainer, "clip_grad_norm", instead::clip_norm> clip_grad_norm{};
  no_such_setting<Trainer, "max_norm", instead::clip_norm> max_norm{};
  no_such_setting<Trainer, "grad_clip", instead::clip_norm> grad_clip{};
  decltype(Settings::runtime) runtime{};
  no_such_setting<Trainer, "threads", instead::HostThreads_among_the_options> threads{};
  no_such_setting<Trainer, "device", instead::Host_or_Cuda_among_the_options> device{};
};

}  // namespace detail

}  // namespace pp
