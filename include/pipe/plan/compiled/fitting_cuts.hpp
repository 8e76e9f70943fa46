// SPDX-License-Identifier: BSL-1.0
//
// Cuts under a memory limit. What decides about the limit is the plan, which also has what no sum
// over layers knows before the cut: boundary slots, staging, bookkeeping and scratch. So the plan
// of the chosen cuts says what each rank has beside what was counted, and as long as a rank is over
// the limit, the model is cut again with this known.
#pragma once

#include <type_traits>
#include <utility>

#include <pipe/plan/compiled/chosen_cuts.hpp>
#include <pipe/plan/compiled/fitting_room.hpp>
#include <pipe/plan/options/memory_limit.hpp>

namespace pp::detail {

/// The most times that a model is cut again.
inline constexpr int most_recuts = 3;

/// Whether a pipeline with these options is cut again where its plan exceeds the memory limit.
template <class Chosen>
inline constexpr bool is_cut_to_fit = Chosen::memory_limit > 0 && is_cut_by_memory<Chosen>;

/// What each rank has beside what was counted: as much as a plan, or as was known before.
///
/// shape: before[ranks], or null; memory[ranks], counted[ranks] -> fixed[ranks]
template <class Ranks, class Counted, class Fixed>
constexpr void find_fixed(long const* before, Ranks const& memory, Counted const& counted,
                          Fixed& fixed) {
  for (int r = 0; r < memory.size(); ++r) {
    fixed[r] = memory[r].bytes - counted[r];
    if (before != nullptr && before[r] > fixed[r]) fixed[r] = before[r];
  }
}

/// Policy P that knows what each rank has beside what it counts.
template <class P, long... Bytes>
struct cut_with_fixed : P {
  struct fixed {
    static constexpr long bytes[] = {Bytes...};
    static constexpr long const* by_rank() { return bytes; }
  };
};

/// The options of a pipeline within its memory limit: those given, with a schedule and cuts of
/// which no rank is over the limit if they are found. The schedule gives way first, since other
/// cuts have a slower stage.
///
/// Compiled: compiled_pipeline, of a model and options
template <template <class, class> class Compiled, class M, class Set, int Left = most_recuts>
struct fitting_options : options_in_room<Compiled, M, Set> {};
template <template <class, class> class Compiled, class M, class Set, int Left>
  requires(Left > 0 && is_cut_to_fit<chosen_options<Set>> && Compiled<M, Set>::by_compiler)
struct fitting_options<Compiled, M, Set, Left> {
  using in_room = typename options_in_room<Compiled, M, Set>::type;
  using compiled = Compiled<M, in_room>;
  using cuts = chosen_cuts<M, chosen_options<Set>>;
  static constexpr bool fits = fullest_over(compiled::memory().rank, compiled::memory_limit) < 0;
  static constexpr auto fixed = [](auto...) {
    list<long, compiled::ranks> bytes;
    find_fixed(cuts::fixed_memory::by_rank(), compiled::memory().rank, cuts::counted(), bytes);
    return bytes;
  }();
  template <class... O, int... R>
  static auto cut_again(option_set<O...>, std::integer_sequence<int, R...>)
      -> option_set<cut_with_fixed<typename compiled::partition, fixed[R]...>, O...>;
  static auto choose() {
    if constexpr (fits)
      return std::type_identity<in_room>{};
    else
      return fitting_options<Compiled, M,
                             decltype(cut_again(
                                 Set{}, std::make_integer_sequence<int, compiled::ranks>{})),
                             Left - 1>{};
  }
  using type = typename decltype(choose())::type;
};

}  // namespace pp::detail
