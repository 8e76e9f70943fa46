// SPDX-License-Identifier: BSL-1.0
//
// A verdict as a one-line compile error, for schedules that are proved without a pipeline:
//
//     static_assert(pp::schedules::proved<pp::schedules::validate(problem, table)>);
#pragma once

#include <pipe/base/diagnosis.hpp>
#include <pipe/schedule/validate.hpp>

namespace pp {

namespace wrong {
template <int Number>
struct OnRank;
template <int Number>
struct AtPosition;
template <auto What>  // a fault, or another reason
struct Because;
template <schedules::action_kind Kind, int Chunk, int MicroBatch>
struct ForAction;
}  // namespace wrong

namespace detail {

/// The diagnosis of a verdict.
template <verdict V>
constexpr auto diagnose_schedule() {
  if constexpr (V.ok())
    return std::type_identity<nothing_wrong>{};
  else
    return diagnosis_of<wrong::schedule_is_not_valid, wrong::Because<V.what>, wrong::OnRank<V.rank>,
                        wrong::AtPosition<V.position>,
                        wrong::ForAction<V.which.kind, V.which.chunk, V.which.micro_batch>>();
}

}  // namespace detail

namespace schedules {

/// True if V is free of faults; otherwise a compile error that names fault, rank, position and
/// action.
template <verdict V>
inline constexpr bool proved = detail::accepted<decltype(detail::diagnose_schedule<V>())>::value;

}  // namespace schedules

}  // namespace pp
