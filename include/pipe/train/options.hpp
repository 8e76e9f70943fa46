// SPDX-License-Identifier: BSL-1.0
//
// The options of a Pipeline. Each belongs to one family; they come in any order, a missing one has a default, and one that
// is unknown or given twice is a one-line error.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/backend.hpp>
#include <pipe/backend/cuda/products.hpp>
#include <pipe/backend/host/backend.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/sgd.hpp>
#include <pipe/passes/partition.hpp>
#include <pipe/schedule/one_f_one_b.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/proved.hpp>
#include <pipe/train/option_family.hpp>
#include <pipe/train/plan.hpp>
#include <pipe/train/precision.hpp>

namespace pp {

/// The model is cut into N stages (default 1).
template <int N>
struct Stages {
  static constexpr auto family = option_family::stages;
  static constexpr int value = N;
};
/// A step's mini-batch is N micro-batches (default 1).
template <int N>
struct MicroBatches {
  static constexpr auto family = option_family::micro_batches;
  static constexpr int value = N;
};
/// A micro-batch is N samples (default 1).
template <int N>
struct MicroBatchSize {
  static constexpr auto family = option_family::micro_batch_size;
  static constexpr int value = N;
};
/// No rank may plan more than N bytes (default: no limit).
template <long N>
struct MemoryLimit {
  static constexpr auto family = option_family::memory_limit;
  static constexpr long value = N;
};

/// Beside every trained parameter its average is kept, decay * average + (1 - decay) * parameter after each step, where decay is
/// Numerator/Denominator; after the first step it is the parameter (default: no averages). As torch.optim.swa_utils.AveragedModel
/// with get_ema_multi_avg_fn(decay).
template <int Numerator, int Denominator>
struct Averaging {
  static constexpr auto family = option_family::averaging;
  static constexpr bool averages = true, in_range = 0 <= Numerator && Numerator < Denominator;
  static constexpr double decay = in_range ? double(Numerator) / Denominator : 0;
  using found = wrong::Found<Numerator, Denominator>;
};
/// No averages of parameters are kept (default).
struct NoAveraging {
  static constexpr auto family = option_family::averaging;
  static constexpr bool averages = false, in_range = true;
  static constexpr double decay = 0;
};

/// Every rank of the host backend works with N threads (default 1). Their number changes no bit of any result.
template <int N>
struct HostThreads {
  static constexpr auto family = option_family::threads;
  static constexpr int value = N;
};

/// The slowest stage as fast as possible by estimated cost (default).
struct ByCost {
  static constexpr auto family = option_family::partition;
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const& costs, int layers, int stages, Cuts& cuts) {
    partition_by_cost(costs, layers, stages, cuts);
  }
  static constexpr bool possible(int, int) { return true; }
};
/// Equal numbers of layers.
struct ByCount {
  static constexpr auto family = option_family::partition;
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const&, int layers, int stages, Cuts& cuts) {
    partition_by_count(layers, stages, cuts);
  }
  static constexpr bool possible(int, int) { return true; }
};

/// Measured times of the layers of a model, as write_profile writes them (train/profile.hpp): nanoseconds per micro-batch.
template <class P>
concept layer_profile = requires {
  requires P::layers > 0;
  requires sizeof(P::forward_nanoseconds) == P::layers * sizeof(long);
  requires sizeof(P::backward_nanoseconds) == P::layers * sizeof(long);
};
/// part / all of a time; nothing of nothing.
constexpr long in_proportion(long time, long part, long all) {
  return all > 0 ? static_cast<long>(static_cast<double>(time) * static_cast<double>(part) / static_cast<double>(all))
                 : 0;
}
/// As ByCost, by the times of profile P instead of estimates. The plan's shares and the simulated schedule have them too.
///
/// needs: no time is negative, and not all are 0
template <class P>
struct ByProfile {
  static constexpr auto family = layer_profile<P> ? option_family::partition : option_family::unknown;
  using profile = P;
  struct times {
    constexpr long operator[](int layer) const {
      return P::forward_nanoseconds[layer] + P::backward_nanoseconds[layer];
    }
  };
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const&, int layers, int stages, Cuts& cuts) {
    partition_by_cost(times{}, layers, stages, cuts);
  }
  static constexpr bool possible(int, int) { return true; }
  /// Time of a layer in nanoseconds. The two parts of its backward, and what runs again, are in proportion to estimates.
  static constexpr chunk_cost time_of(int layer, chunk_cost const& estimate, long again) {
    long const forward = P::forward_nanoseconds[layer], backward = P::backward_nanoseconds[layer];
    long const weight =
        in_proportion(backward, estimate.backward_weight, estimate.backward_input + estimate.backward_weight);
    return chunk_cost{forward, backward - weight + in_proportion(forward, again, estimate.forward), weight};
  }
};
/// The user's own cuts: the layers (from 0, as `explain` counts them) with which the second, third ... stage begins.
template <int... At>
struct Cut {
  static constexpr auto family = option_family::partition;
  template <class Costs, class Cuts>
  static constexpr void cut(Costs const&, int layers, int stages, Cuts& cuts) {
    constexpr int at[] = {0, At..., 0};
    for (int s = 0; s < stages; ++s) cuts[s] = at[s];
    cuts[stages] = layers;
  }
  /// law: one cut less than stages, ascending, every stage has a layer
  static constexpr bool possible(int layers, int stages) {
    constexpr int at[] = {0, At..., 0};
    if (int(sizeof...(At)) != stages - 1) return false;
    for (int s = 1; s < stages; ++s)
      if (at[s] <= at[s - 1]) return false;
    return at[stages - 1] < layers;
  }
};

/// Everything that backward reads is kept from forward (default).
struct RecomputeNothing {
  static constexpr auto family = option_family::recompute;
  static constexpr bool recomputes = false, keeps_last = false;
  static constexpr bool drops(op_kind) { return false; }
};
/// Only what enters a stage is kept; backward runs forward again. Source: Huang et al., GPipe, 2019, section 2.3.
struct RecomputeAll {
  static constexpr auto family = option_family::recompute;
  static constexpr bool recomputes = true, keeps_last = false;
  static constexpr bool drops(op_kind) { return true; }
};
/// The same for all micro-batches but the last, whose backward follows soon after its forward. Source: Kim et al.,
/// torchgpipe, 2020.
struct RecomputeAllButLast {
  static constexpr auto family = option_family::recompute;
  static constexpr bool recomputes = true, keeps_last = true;
  static constexpr bool drops(op_kind) { return true; }
};
/// The results of these kinds of op are made again: cheap ones that take much memory. Source: Korthikanti et al.,
/// "Reducing activation recomputation in large transformer models", 2022.
template <op_kind... Kinds>
struct Recompute {
  static constexpr auto family = option_family::recompute;
  static constexpr bool recomputes = sizeof...(Kinds) > 0, keeps_last = false;
  static constexpr bool drops(op_kind kind) { return ((kind == Kinds) || ...); }
};

template <class B>
concept compute_backend = requires {
  { B::parts_for(group{}, 1, 1) } -> std::same_as<int>;
};

template <class O>
constexpr option_family option_family_of() {
  if constexpr (requires { O::family; })
    return O::family;
  else if constexpr (schedule_policy<O>)
    return option_family::schedule;
  else if constexpr (optimizer<O>)
    return option_family::optimizer;
  else if constexpr (compute_backend<O>)
    return option_family::backend;
  else if constexpr (product_option<O>)
    return option_family::products;
  else
    return option_family::unknown;
}

namespace wrong {
template <class... What>
struct first_argument_of_a_pipeline_must_be_a_model;
template <class... What>
struct option_is_unknown;
template <class... What>
struct schedule_is_incomplete;
template <class... What>
struct optimizer_is_incomplete;
template <class... What>
struct option_is_given_twice;
template <class... What>
struct more_stages_than_layers;
template <class... What>
struct number_must_be_positive;
template <class... What>
struct decay_of_averages_is_out_of_range;
template <class... What>
struct pipeline_keeps_no_averages;
template <class... What>
struct stages_are_no_multiple_of_the_chunks_per_rank;
template <class... What>
struct cuts_must_ascend_and_make_as_many_stages;
template <class... What>
struct profile_is_of_another_model;
template <class... What>
struct schedule_does_not_train;
template <class... What>
struct pipeline_keeps_one_copy_of_each_weight;
template <class... What>
struct no_parameters_to_train;
template <class... What>
struct cuda_is_compiled_by_nvcc;
template <class... What>
struct cuda_needs_a_target_from_sm_80;
template <class... What>
struct backend_has_no_such_precision;
template <class... What>
struct cuda_updates_single_elements;
template <class... What>
struct custom_layer_has_no_functions_for_cuda;
template <class... What>
struct host_has_no_cublaslt;
template <class... What>
struct memory_limit_is_exceeded;

/// Words of their messages.
template <long Bytes>
struct LimitBytes;
template <long Bytes>
struct NeededBytes;
template <long Bytes>
struct OverBytes;
template <memory_use What, long Bytes>
struct Takes;
template <int Number>
struct Layers;
}  // namespace wrong

/// The options of one pipeline, with defaults where none is given.
template <class... O>
struct option_set {
  using all = layers<O..., Stages<1>, MicroBatches<1>, MicroBatchSize<1>, OneFOneB, FP32, SGD, Host, ByCost,
                     MemoryLimit<0>, RecomputeNothing, NoAveraging, HostThreads<1>, PlannedProducts>;
  static constexpr int given = sizeof...(O);

  static constexpr int first_of(option_family f, int from) {
    constexpr option_family families[] = {
        option_family_of<O>()...,        option_family::stages,    option_family::micro_batches,
        option_family::micro_batch_size, option_family::schedule,  option_family::precision,
        option_family::optimizer,        option_family::backend,   option_family::partition,
        option_family::memory_limit,     option_family::recompute, option_family::averaging,
        option_family::threads,          option_family::products};
    for (int i = from; i < given + option_families - 1; ++i)
      if (families[i] == f) return i;
    return -1;
  }
  template <option_family F>
  using get = leaf_at<first_of(F, 0), all>;

  /// The second of two options of one family, or -1.
  static constexpr int doubled() {
    for (int f = 1; f < option_families; ++f) {
      int const first = first_of(option_family(f), 0),
                second = first < given ? first_of(option_family(f), first + 1) : -1;
      if (second >= 0 && second < given) return second;
    }
    return -1;
  }
};

/// What a type of a user's own lacks of a schedule, or of an optimizer; `none` if it does not look like one.
template <class O>
constexpr member missing_of_schedule() {
  using enum member;
  if constexpr (!requires(problem<> const& question, static_table<1, 8>& answer) { O::fill(question, answer); })
    return requires { O::chunks_per_rank; } ? fill : none;
  else if constexpr (!requires { O::name; })
    return name;
  else if constexpr (!requires { O::where; })
    return where;
  else if constexpr (!requires { O::chunks_per_rank; })
    return chunks_per_rank;
  else if constexpr (!requires { O::splits_backward; })
    return splits_backward;
  else if constexpr (!requires { O::trains; })
    return trains;
  else
    return none;
}
template <class O>
constexpr member missing_of_optimizer() {
  using enum member;
  if constexpr (!element_optimizer<O> && !tensor_optimizer<O>)
    return requires(O const& o) { o.learning_rate; } ? states_and_prepare : none;
  else if constexpr (!requires {
                       { O::name } -> std::convertible_to<char const*>;
                     })
    return name;
  else if constexpr (!requires(O const& o) { o.learning_rate; })
    return learning_rate;
  else
    return none;
}
/// What is wrong with type O among the options.
template <class O>
constexpr auto diagnose_unknown() {
  constexpr member of_schedule = missing_of_schedule<O>(), of_optimizer = missing_of_optimizer<O>();
  if constexpr (of_schedule != member::none)
    return diagnosis_of<wrong::schedule_is_incomplete, O, wrong::Missing<of_schedule>>();
  else if constexpr (of_optimizer != member::none)
    return diagnosis_of<wrong::optimizer_is_incomplete, O, wrong::Missing<of_optimizer>>();
  else
    return diagnosis_of<wrong::option_is_unknown, O>();
}

/// Whether a schedule reads one copy of each weight in one version: no second replica, no update before the end of the step.
template <schedule_policy S>
constexpr bool reads_one_copy() {
  return replicas(S::where) == 1 && !is_unflushed<S>();
}
/// Whether so many chunks can lie on each rank.
constexpr bool can_place(placement where, int chunks_per_rank) {
  return where != placement::straight || chunks_per_rank == 1;
}

/// What is wrong with a set of options by themselves.
template <class O>
constexpr auto diagnose_options() {
  using all = typename O::all;
  using stages = typename O::template get<option_family::stages>;
  using micro_batches = typename O::template get<option_family::micro_batches>;
  using size = typename O::template get<option_family::micro_batch_size>;
  using schedule = typename O::template get<option_family::schedule>;
  using threads = typename O::template get<option_family::threads>;
  using limit = typename O::template get<option_family::memory_limit>;
  using averaging = typename O::template get<option_family::averaging>;
  using backend = typename O::template get<option_family::backend>;
  using precision = typename O::template get<option_family::precision>;
  using optimizer = typename O::template get<option_family::optimizer>;
  using products = typename O::template get<option_family::products>;
  constexpr int unknown = O::first_of(option_family::unknown, 0), twice = O::doubled();
  if constexpr (unknown >= 0) {
    return diagnose_unknown<leaf_at<(unknown < 0 ? 0 : unknown), all>>();
  } else if constexpr (twice >= 0) {
    using second = leaf_at<(twice < 0 ? 0 : twice), all>;
    return diagnosis_of<wrong::option_is_given_twice, typename O::template get<option_family_of<second>()>, second>();
  } else if constexpr (stages::value < 1) {
    return diagnosis_of<wrong::number_must_be_positive, stages>();
  } else if constexpr (micro_batches::value < 1) {
    return diagnosis_of<wrong::number_must_be_positive, micro_batches>();
  } else if constexpr (size::value < 1) {
    return diagnosis_of<wrong::number_must_be_positive, size>();
  } else if constexpr (threads::value < 1) {
    return diagnosis_of<wrong::number_must_be_positive, threads>();
  } else if constexpr (limit::value < 0) {
    return diagnosis_of<wrong::number_must_be_positive, limit>();
  } else if constexpr (!averaging::in_range) {
    return diagnosis_of<wrong::decay_of_averages_is_out_of_range, averaging, typename averaging::found>();
  } else if constexpr (schedule::chunks_per_rank < 1) {
    return diagnosis_of<wrong::number_must_be_positive, schedule, wrong::Found<schedule::chunks_per_rank>>();
  } else if constexpr (!reads_one_copy<schedule>()) {
    return diagnosis_of<wrong::pipeline_keeps_one_copy_of_each_weight, schedule>();
  } else if constexpr (!can_place(schedule::where, schedule::chunks_per_rank)) {
    return diagnosis_of<wrong::schedule_is_not_valid, schedule, wrong::Because<fault::wrong_shape>>();
  } else if constexpr (!schedule::trains) {
    return diagnosis_of<wrong::schedule_does_not_train, schedule>();
  } else if constexpr (stages::value % schedule::chunks_per_rank != 0) {
    return diagnosis_of<wrong::stages_are_no_multiple_of_the_chunks_per_rank, stages, schedule>();
  } else if constexpr (why_refused<schedule>(stages::value / schedule::chunks_per_rank, micro_batches::value) !=
                       nullptr) {
    return diagnosis_of<wrong::schedule_refuses_these_numbers, schedule, stages, micro_batches>();
  } else if constexpr (requires { backend::is_device; } && !is_nvcc) {
    return diagnosis_of<wrong::cuda_is_compiled_by_nvcc, backend>();
  } else if constexpr (requires { backend::is_device; } && !has_target_for_kernels) {
    return diagnosis_of<wrong::cuda_needs_a_target_from_sm_80, backend>();
  } else if constexpr (!backend::template computes_in<precision>) {
    return diagnosis_of<wrong::backend_has_no_such_precision, backend, precision>();
  } else if constexpr (requires { backend::is_device; } && tensor_optimizer<optimizer>) {
    return diagnosis_of<wrong::cuda_updates_single_elements, backend, optimizer>();
  } else if constexpr (!requires { backend::is_device; } && needs_cublaslt(products::products)) {
    return diagnosis_of<wrong::host_has_no_cublaslt, backend, products>();
  } else {
    return std::type_identity<nothing_wrong>{};
  }
}

/// What is wrong with training model M at all.
template <class M>
constexpr auto diagnose_parameters() {
  constexpr bool any = [] {
    for (int i = 0; i < M::graph.size.parameters; ++i)
      if (M::graph.parameters[i].trained) return true;
    return false;
  }();
  if constexpr (any)
    return std::type_identity<nothing_wrong>{};
  else
    return diagnosis_of<wrong::no_parameters_to_train, M>();
}

/// The first of a model's layers that a device cannot run: a user's own without functions for one; or -1.
template <class Backend, class T, class... L>
constexpr int first_without_kernels(layers<L...>) {
  constexpr auto lacks = []<class Layer>(Layer const*) {
    if constexpr (requires { typename Layer::kernels; })
      return !Backend::template can_call<Layer, T>;
    else
      return false;
  };
  bool const found[] = {lacks(static_cast<L const*>(nullptr))...};
  for (int i = 0; i < int(sizeof...(L)); ++i)
    if (found[i]) return i;
  return -1;
}

/// What is wrong with running model M on the backend of options O.
template <class M, class O>
constexpr auto diagnose_backend() {
  using backend = typename O::template get<option_family::backend>;
  using leaves = typename M::leaves;
  if constexpr (requires { backend::is_device; }) {
    constexpr int lacking =
        first_without_kernels<backend, typename O::template get<option_family::precision>::value>(leaves{});
    if constexpr (lacking >= 0)
      return diagnosis_of<wrong::custom_layer_has_no_functions_for_cuda, leaf_at<lacking, leaves>>();
    else
      return std::type_identity<nothing_wrong>{};
  } else {
    return std::type_identity<nothing_wrong>{};
  }
}

/// Whether a partition policy has times of a model of so many layers, or needs none.
template <class Cutter>
constexpr bool has_times_of([[maybe_unused]] int layers) {
  if constexpr (requires { typename Cutter::profile; })
    return Cutter::profile::layers == layers;
  else
    return true;
}

/// What is wrong with cutting model M as options O say.
template <class M, class O>
constexpr auto diagnose_cut() {
  using stages = typename O::template get<option_family::stages>;
  using cutter = typename O::template get<option_family::partition>;
  if constexpr (stages::value > M::graph.size.units)
    return diagnosis_of<wrong::more_stages_than_layers, stages, wrong::Layers<M::graph.size.units>>();
  else if constexpr (!has_times_of<cutter>(M::graph.size.units))
    return diagnosis_of<wrong::profile_is_of_another_model, typename cutter::profile,
                        wrong::Expected<M::graph.size.units>, wrong::Found<cutter::profile::layers>>();
  else if constexpr (!cutter::possible(M::graph.size.units, stages::value))
    return diagnosis_of<wrong::cuts_must_ascend_and_make_as_many_stages, cutter, stages,
                        wrong::Layers<M::graph.size.units>>();
  else
    return std::type_identity<nothing_wrong>{};
}

}  // namespace pp
