// SPDX-License-Identifier: BSL-1.0
//
// The options of a Pipeline. Each belongs to one family; their order is free and a missing one has
// a default. An unknown or duplicate option is a one-line error.
#pragma once

#include <type_traits>

#include <pipe/base/list.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/plan/options/attentions.hpp>
#include <pipe/plan/options/averaging.hpp>
#include <pipe/plan/options/backend.hpp>
#include <pipe/plan/options/devices.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/options/gradient_accumulation.hpp>
#include <pipe/plan/options/graphs.hpp>
#include <pipe/plan/options/input_gradients.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/plan/options/memory_limit.hpp>
#include <pipe/plan/options/micro_batch_size.hpp>
#include <pipe/plan/options/micro_batches.hpp>
#include <pipe/plan/options/offload.hpp>
#include <pipe/plan/options/optimizer.hpp>
#include <pipe/plan/options/partition.hpp>
#include <pipe/plan/options/precision.hpp>
#include <pipe/plan/options/prefetching.hpp>
#include <pipe/plan/options/products.hpp>
#include <pipe/plan/options/recompute.hpp>
#include <pipe/plan/options/schedule.hpp>
#include <pipe/plan/options/sorts.hpp>
#include <pipe/plan/options/stages.hpp>
#include <pipe/plan/options/threads.hpp>
#include <pipe/plan/options/transport.hpp>
#include <pipe/plan/options/zero.hpp>

namespace pp {

namespace detail {

/// All families, in the order in which their errors are reported. A new family is an entry here and
/// a header.
using option_families =
    layers<option_family::stages, option_family::micro_batches, option_family::micro_batch_size,
           option_family::sum, option_family::zero, option_family::schedule,
           option_family::partition, option_family::recompute, option_family::precision,
           option_family::optimizer, option_family::averaging, option_family::offload,
           option_family::prefetching, option_family::input_gradients, option_family::threads,
           option_family::products, option_family::sorts, option_family::attentions,
           option_family::graphs, option_family::backend, option_family::transport,
           option_family::devices, option_family::lengths, option_family::memory_limit>;

/// Index of an option's family; the number of families if it belongs to none.
template <class O, class... Family>
constexpr int find_family(layers<Family...> all) {
  if constexpr (requires { typename O::family; }) {
    return leaf_index<typename O::family>(all);
  } else {
    // The last entry ends the search: no family holds O.
    bool const holds[] = {Family::template holds<O>()..., true};
    int i = 0;
    while (!holds[i]) ++i;
    return i;
  }
}

/// The options of a pipeline, with the default of each family that is not given.
template <class... O>
struct option_set {
  static constexpr int given = sizeof...(O), families = leaf_count(option_families{});
  /// The list of `all`; only its type is used.
  template <class... Family>
  static constexpr layers<O..., typename Family::fallback...> with_fallbacks(layers<Family...>) {
    return {};
  }
  /// The given options, followed by the default of every family.
  using all = decltype(with_fallbacks(option_families{}));
  /// Families of the given options.
  static constexpr list<int, given> family_of{{find_family<O>(option_families{})...}};

  /// The first option of a family from a position on, or -1.
  static constexpr int find(int family, int from = 0) {
    for (int i = from; i < given; ++i)
      if (family_of[i] == family) return i;
    return -1;
  }
  /// Positions of the families' options in `all`: of the first that is given, or of the default.
  static constexpr auto places = [] {
    list<int, families> at{};
    for (int f = 0; f < families; ++f) at[f] = given + f;
    for (int i = given - 1; i >= 0; --i)
      if (family_of[i] < families) at[family_of[i]] = i;
    return at;
  }();
  /// A family's option: the given one, or the default.
  template <class Family>
  using get = leaf_at<places[leaf_index<Family>(option_families{})], all>;

  /// Position of an option that belongs to no family, and of the second option of one family; -1:
  /// none.
  static constexpr int unknown() { return find(families); }
  static constexpr int doubled() {
    for (int f = 0; f < families; ++f)
      if (int const second = places[f] < given ? find(f, places[f] + 1) : -1; second >= 0)
        return second;
    return -1;
  }
};

/// The options in words, for all that reads them. A new option that the library reads is a line
/// here.
///
/// needs: a valid option_set
template <class Options>
struct chosen_options {
  template <class Family>
  using option = typename Options::template get<Family>;

  using precision = option<option_family::precision>;
  using element = typename precision::element;
  using value = typename precision::value;
  using partition = option<option_family::partition>;
  using recompute = option<option_family::recompute>;
  using optimizer = option<option_family::optimizer>;
  using averaging = option<option_family::averaging>;
  using prefetching = option<option_family::prefetching>;
  using keeps_input_gradients = option<option_family::input_gradients>;
  static constexpr bool input_gradients = keeps_input_gradients::is_on;
  using graphs = option<option_family::graphs>;
  using lengths = option<option_family::lengths>;
  static constexpr int length_block = lengths::block;
  using sum = option<option_family::sum>;
  using backend = option<option_family::backend>;
  using offload = offload_of<option<option_family::offload>, backend>;
  using transport = typename option<option_family::transport>::transport;
  using zero = zero_of<option<option_family::zero>, transport>;
  using row_sort = typename option<option_family::sorts>::row_sort;
  using attention_library = typename option<option_family::attentions>::attention_library;
  static constexpr number_widths widths{int(sizeof(element)), int(sizeof(value)),
                                        backend::has_transposes, zero::level > 1,
                                        reads_panels<backend, precision>()};
  static constexpr product_policy products = option<option_family::products>::products;
  static constexpr int devices = option<option_family::devices>::count;
  /// Per rank.
  static constexpr int threads = option<option_family::threads>::host_threads;
  /// Bytes of a rank.
  static constexpr long memory_limit = option<option_family::memory_limit>::value;
  static constexpr int room_trial = trial_of<option<option_family::memory_limit>>();

  /// The schedule, whose steps may overlap; and its order of one step alone.
  using schedule = option<option_family::schedule>;
  using flushed = flushed_of<schedule>;
  static constexpr step_overlap overlap = overlap_of<schedule>();
  static constexpr bool is_free = overlap == step_overlap::free;

  static constexpr int stages = option<option_family::stages>::value;
  static constexpr auto where = placement_of<option<option_family::stages>, flushed>();
  static constexpr int ranks = ranks_of<option<option_family::stages>, flushed>();
  static constexpr int holder_count = holders(where, stages);
  /// The partition policy, which is told the numbers of ranks if it takes them.
  using cutter = partition_of<partition, option<option_family::stages>>;

  static constexpr int micro_batches = option<option_family::micro_batches>::value;
  /// Micro-batches of a step: those of all accumulations.
  static constexpr int mini_batch = micro_batches * sum::accumulations;
  /// Samples of a micro-batch.
  static constexpr int samples = option<option_family::micro_batch_size>::value;
  /// Whether replicas have parts of gradients only, also while a run adds to them: those of several
  /// micro-batches are added up whole.
  static constexpr bool divides_gradients = zero::level > 1 && micro_batches == 1;

  /// Whether the schedule runs R: then a stage of which it runs none keeps all values.
  static constexpr bool recomputes_ahead = pp::detail::recomputes_ahead<flushed>();
  /// The first micro-batch whose values are all kept for backward; earlier ones recompute.
  static constexpr int first_kept =
      !recompute::recomputes ? 0 : micro_batches - int(recompute::keeps_last);
  static constexpr bool some_drop = first_kept > 0;
  static constexpr bool some_keep = first_kept < micro_batches || recomputes_ahead;
};

}  // namespace detail

}  // namespace pp
