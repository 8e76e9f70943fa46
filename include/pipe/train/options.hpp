// SPDX-License-Identifier: BSL-1.0
//
// The options of a Pipeline. Each belongs to one family; they come in any order, a missing one has
// a default, and one that is unknown or given twice is a one-line error.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/backend.hpp>
#include <pipe/backend/cuda/matmul/matmul_option.hpp>
#include <pipe/backend/host/backend.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/nn/ratio.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/sgd.hpp>
#include <pipe/passes/partition.hpp>
#include <pipe/schedule/one_f_one_b.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/train/option_family.hpp>
#include <pipe/train/options/memory_limit.hpp>
#include <pipe/train/plan.hpp>
#include <pipe/train/precision.hpp>
#include <pipe/transport/in_process.hpp>

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
/// Beside every trained parameter its average is kept, decay * average + (1 - decay) * parameter
/// after each step, where decay is Numerator/Denominator; after the first step it is the parameter
/// (default: no averages). As torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay).
template <auto Numerator, int Denominator = 1>
struct Averaging {
  using quotient = ratio<Numerator, Denominator>;
  static constexpr auto family = option_family::averaging;
  static constexpr bool averages = true, of_integers = quotient::of_integers,
                        in_range = quotient::at_least_zero() && quotient::numerator < Denominator;
  static constexpr double decay = in_range ? quotient::template value<double>() : 0;
  using found = wrong::Found<quotient::numerator, Denominator>;
};
/// No averages of parameters are kept (default).
struct NoAveraging {
  static constexpr auto family = option_family::averaging;
  static constexpr bool averages = false, of_integers = true, in_range = true;
  static constexpr double decay = 0;
};

/// Every rank of the host backend works with N threads (default 1). Their number changes no bit of
/// any result.
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

/// Measured times of the layers of a model, as write_profile writes them (train/profile.hpp):
/// nanoseconds per micro-batch.
template <class P>
concept layer_profile = requires {
  requires P::layers > 0;
  requires sizeof(P::forward_nanoseconds) == P::layers * sizeof(long);
  requires sizeof(P::backward_nanoseconds) == P::layers * sizeof(long);
};
/// part / all of a time; nothing of nothing.
constexpr long in_proportion(long time, long part, long all) {
  return all > 0 ? static_cast<long>(static_cast<double>(time) * static_cast<double>(part) /
                                     static_cast<double>(all))
                 : 0;
}
/// As ByCost, by the times of profile P instead of estimates. The plan's shares and the simulated
/// schedule have them too.
///
/// needs: no time is negative, and not all are 0
template <class P>
struct ByProfile {
  static constexpr auto family =
      layer_profile<P> ? option_family::partition : option_family::unknown;
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
  /// Time of a layer in nanoseconds. The two parts of its backward, and what runs again, are in
  /// proportion to estimates.
  static constexpr chunk_cost time_of(int layer, chunk_cost const& estimate, long again) {
    long const forward = P::forward_nanoseconds[layer], backward = P::backward_nanoseconds[layer];
    long const weight = in_proportion(backward, estimate.backward_weight,
                                      estimate.backward_input + estimate.backward_weight);
    return chunk_cost{forward, backward - weight + in_proportion(forward, again, estimate.forward),
                      weight};
  }
};
/// User-defined cuts: the layers (from 0, as `explain` counts them) with which the second, third
/// ... stage begins.
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
/// Only what enters a stage is kept; backward runs forward again. Source: Huang et al., GPipe,
/// 2019, section 2.3.
struct RecomputeAll {
  static constexpr auto family = option_family::recompute;
  static constexpr bool recomputes = true, keeps_last = false;
  static constexpr bool drops(op_kind) { return true; }
};
/// The same for all micro-batches but the last, whose backward follows soon after its forward.
/// Source: Kim et al., torchgpipe, 2020.
struct RecomputeAllButLast {
  static constexpr auto family = option_family::recompute;
  static constexpr bool recomputes = true, keeps_last = true;
  static constexpr bool drops(op_kind) { return true; }
};
/// The results of these kinds of op are made again: cheap ones that take much memory. Source:
/// Korthikanti et al., "Reducing activation recomputation in large transformer models", 2022.
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

/// Ranks are threads of this process and read each other's memory (default).
struct InProcess {
  using transport = in_process;
};

/// An option that names how ranks wait for each other and hand values over.
template <class O>
concept transport_option = transport<typename O::transport>;

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
  else if constexpr (transport_option<O>)
    return option_family::transport;
  else
    return option_family::unknown;
}

/// The options of one pipeline, with defaults where none is given.
template <class... O>
struct option_set {
  using all = layers<O..., Stages<1>, MicroBatches<1>, MicroBatchSize<1>, OneFOneB, FP32, SGD, Host,
                     ByCost, MemoryLimit<0>, RecomputeNothing, NoAveraging, HostThreads<1>,
                     PlannedProducts, InProcess>;
  static constexpr int given = sizeof...(O);

  static constexpr int first_of(option_family f, int from) {
    constexpr option_family families[] = {
        option_family_of<O>()...,        option_family::stages,    option_family::micro_batches,
        option_family::micro_batch_size, option_family::schedule,  option_family::precision,
        option_family::optimizer,        option_family::backend,   option_family::partition,
        option_family::memory_limit,     option_family::recompute, option_family::averaging,
        option_family::threads,          option_family::products,  option_family::transport};
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

}  // namespace pp
