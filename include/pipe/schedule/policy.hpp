// SPDX-License-Identifier: BSL-1.0
//
// The concept of a schedule family: a type with a few constants and one function. No registration,
// no base class: a user-defined schedule is ten lines, and `schedules::validate` says whether it is
// correct.
//
//     struct OneFOneB {
//       static constexpr char const* name = "1f1b";
//       static constexpr auto where = schedules::placement::straight;  // the rank of each chunk
//       static constexpr int chunks_per_rank = 1;
//       static constexpr bool splits_backward = false;            // B and W apart?
//       static constexpr bool trains = true;                      // false: forward only
//
//       template <class Problem, class Table>
//       static constexpr void fill(Problem const& problem, Table& table) {
//         ... table.push(rank, {kind, chunk, micro_batch}); ...
//       }
//     };
//
// Optional members: `static constexpr char const* refuses(int ranks, int micro_batches)` (see
// why_refused), `static constexpr bool updates = true` (see is_unflushed), `static constexpr bool
// replicates = true` (see has_stage_replicas), `static constexpr bool recomputes_ahead = true` (R
// is in the table), `static constexpr bool limits_memory = true` (no rank has more in flight than
// problem.room(rank) allows), and `static constexpr bool fits_a_constant(int ranks, int
// micro_batches)`.
#pragma once

#include <concepts>
#include <type_traits>

#include <pipe/base/constant.hpp>
#include <pipe/base/diagnosis.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/required.hpp>
#include <pipe/schedule/table.hpp>

namespace pp {

namespace detail {

/// Whether P::refuses, where it exists, returns a text or null rather than a bool.
template <class P>
concept refuses_in_words = (
                               !requires(int n) { P::refuses(n, n); } ||
                               requires(int n) {
                                 { P::refuses(n, n) } -> std::convertible_to<char const*>;
                               }) &&
                           (
                               !requires(problem<> const& question) { P::refuses(question); } ||
                               requires(problem<> const& question) {
                                 { P::refuses(question) } -> std::convertible_to<char const*>;
                               });

/// The members of a schedule family, whether or not they are constants.
template <class P>
concept has_facts_of_schedule = requires(problem<> const& question, static_table<1, 8>& answer) {
  { P::name } -> std::convertible_to<char const*>;
  { P::where } -> std::convertible_to<placement>;
  { P::chunks_per_rank } -> std::convertible_to<int>;
  { P::splits_backward } -> std::convertible_to<bool>;
  { P::trains } -> std::convertible_to<bool>;
  P::fill(question, answer);
} && refuses_in_words<P>;

}  // namespace detail

namespace schedules {

/// A schedule family: constant properties, and a `fill` that writes each rank's list.
template <class P>
concept schedule_policy = detail::has_facts_of_schedule<P> && requires {
  typename detail::constants<detail::is_read(P::name), detail::is_read(P::where),
                             detail::is_read(P::chunks_per_rank),
                             detail::is_read(P::splits_backward), detail::is_read(P::trains)>;
} && (!requires { P::updates; } || requires {
  typename detail::constants<detail::is_read(P::updates)>;
}) && (!requires { P::recomputes_ahead; } || requires {
  typename detail::constants<detail::is_read(P::recomputes_ahead)>;
}) && (!requires { P::limits_memory; } || requires {
  typename detail::constants<detail::is_read(P::limits_memory)>;
});

/// The reason why a family has no table for these numbers, a text that follows the family's name;
/// null if the family has a table.
template <schedule_policy Policy>
constexpr char const* why_refused(int ranks, int micro_batches) {
  if constexpr (requires { Policy::refuses(ranks, micro_batches); })
    return Policy::refuses(ranks, micro_batches);
  else
    return nullptr;
}

/// The reason of a family whose answer depends on more of the problem, such as the memory limit.
template <schedule_policy Policy, pipeline_problem Problem>
constexpr char const* why_refused(Problem const& problem) {
  if (!detail::fits_placement(problem, Policy::where))
    return "needs a number of chunks that fits its placement, and a cost for each of them";
  if constexpr (requires { Policy::refuses(problem); })
    return Policy::refuses(problem);
  else
    return why_refused<Policy>(problem.ranks, problem.micro_batches);
}

}  // namespace schedules

namespace detail {

/// How steps follow each other. none: with a barrier of all ranks. confirmed: each rank updates its
/// weights when its own gradients are complete, and the first backward of the next step confirms
/// the update or takes it back. free: no update is taken back.
enum class step_overlap : unsigned char { none, confirmed, free };

/// Whether the family updates weights inside its table, without a flush.
template <schedule_policy Policy>
constexpr bool is_unflushed() {
  if constexpr (requires { Policy::updates; })
    return Policy::updates;
  else
    return false;
}

/// The family of a single step: the family itself, unless the family is about steps that overlap.
template <class Policy>
struct flushed_family {
  using type = Policy;
};
template <class Policy>
  requires requires { typename Policy::flushed; }
struct flushed_family<Policy> {
  using type = typename Policy::flushed;
};
template <class Policy>
using flushed_of = typename flushed_family<Policy>::type;

/// Whether forwards of the family read weights that are predicted for their backwards.
template <class Policy>
constexpr bool predicts() {
  if constexpr (requires { Policy::predicts; })
    return Policy::predicts;
  else
    return false;
}

/// How the steps of a family follow each other in a run of several.
template <class Policy>
constexpr step_overlap overlap_of() {
  if constexpr (requires { Policy::overlap; })
    return Policy::overlap;
  else
    return step_overlap::none;
}

/// Whether the family has pairs: see Paired.
template <schedule_policy Policy>
constexpr bool has_pairs() {
  return requires { Policy::hidden_percent; };
}
/// The part of F, in percent, that the backward of a pair hides: see Paired.
template <schedule_policy Policy>
constexpr int hidden_percent_of() {
  if constexpr (has_pairs<Policy>())
    return Policy::hidden_percent;
  else
    return 0;
}

/// Whether the family's `fill` reads the placement of its table, which may be stage_ranks.
template <schedule_policy Policy>
constexpr bool has_stage_replicas() {
  if constexpr (requires { Policy::replicates; })
    return Policy::replicates;
  else
    return false;
}

/// Whether the family has R in its table. A chunk without R stores all that its backward reads.
template <schedule_policy Policy>
constexpr bool recomputes_ahead() {
  if constexpr (requires { Policy::recomputes_ahead; })
    return Policy::recomputes_ahead;
  else
    return false;
}

/// Whether no rank of the family's tables needs more memory than the problem's limit, where one
/// micro-batch fits.
template <schedule_policy Policy>
constexpr bool limits_memory() {
  if constexpr (requires { Policy::limits_memory; })
    return Policy::limits_memory;
  else
    return false;
}

/// The maximum length of a rank's list: F, and BW or B and W, of every chunk and micro-batch of the
/// rank, R where the family has R, and without a flush an update after each micro-batch.
template <schedule_policy Policy>
constexpr long actions_per_rank(int micro_batches) {
  constexpr long kinds = (!Policy::trains           ? 1
                          : Policy::splits_backward ? 3
                                                    : 2) +
                         is_unflushed<Policy>() + recomputes_ahead<Policy>();
  constexpr int copies = replicas(Policy::where);
  return kinds * Policy::chunks_per_rank * ((long(micro_batches) + copies - 1) / copies);
}

}  // namespace detail

namespace schedules {

/// Whether every compiler can make and prove the policy's table at compile time within its default
/// limits: up to 16 ranks of two chunks and 128 micro-batches with B and W apart, unless the policy
/// has its own fits_a_constant(ranks, micro_batches).
template <schedule_policy Policy>
constexpr bool fits_a_constant(int ranks, int micro_batches) {
  if constexpr (requires { Policy::fits_a_constant(ranks, micro_batches); })
    return Policy::fits_a_constant(ranks, micro_batches);
  else
    return ranks * detail::actions_per_rank<Policy>(micro_batches) <= 3 * 16 * 2 * 128;
}

}  // namespace schedules

namespace wrong {
template <int Number>
struct ForRanks;
template <int Number>
struct ForMicroBatches;
}  // namespace wrong

namespace detail {

/// Whether a policy is made of a text that is not readable: see FromCSV.
template <class Policy>
inline constexpr bool has_faulty_text = false;
template <class Policy>
  requires requires { typename Policy::diagnosis_of_text; }
inline constexpr bool has_faulty_text<Policy> =
    !is_accepted<typename Policy::diagnosis_of_text::type>;

/// The diagnosis of a policy for these numbers.
template <class Policy, int Ranks, int MicroBatches>
constexpr auto diagnose_table() {
  if constexpr (has_faulty_text<Policy>)
    return typename Policy::diagnosis_of_text{};
  else if constexpr (why_refused<Policy>(Ranks, MicroBatches) == nullptr)
    return std::type_identity<nothing_wrong>{};
  else
    return diagnosis_of<wrong::schedule_refuses_these_numbers, Policy, wrong::ForRanks<Ranks>,
                        wrong::ForMicroBatches<MicroBatches>>();
}

}  // namespace detail

namespace schedules {

/// The table of a policy for a problem known at compile time.
///
/// law:   problem.ranks == Ranks and problem.micro_batches == MicroBatches
/// needs: the policy does not refuse these numbers: otherwise a one-line compile error
template <schedule_policy Policy, int Ranks, int MicroBatches, pipeline_problem Problem,
          detail::chunk_placement Where>
constexpr auto make_table(Problem const& problem, Where const& where) {
  static_assert(
      detail::accepted<decltype(detail::diagnose_table<Policy, Ranks, MicroBatches>())>::value);
  auto table = static_table<Ranks, int(detail::actions_per_rank<Policy>(MicroBatches)), Where>{};
  table.where = where;
  table.trains = Policy::trains;
  Policy::fill(problem, table);
  return table;
}
template <schedule_policy Policy, int Ranks, int MicroBatches, pipeline_problem Problem>
constexpr auto make_table(Problem const& problem) {
  return make_table<Policy, Ranks, MicroBatches>(problem, Policy::where);
}

/// The table of a policy for chunks that all cost one unit per action: for properties that do not
/// depend on times.
template <schedule_policy Policy, int Ranks, int MicroBatches>
constexpr auto make_table() {
  int const chunks = chunks_for(Policy::where, Ranks, Policy::chunks_per_rank);
  problem<> const equal{Ranks, chunks, MicroBatches, 0, same_cost{}};
  return make_table<Policy, Ranks, MicroBatches>(equal, Policy::where);
}

}  // namespace schedules

}  // namespace pp
