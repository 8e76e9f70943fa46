// SPDX-License-Identifier: BSL-1.0
//
// The objective of a search for an order.
#pragma once

namespace pp {

namespace schedules {

/// The time to minimise. stage_local_span: the longest time from a rank's first action to its last,
/// the papers' measure. makespan: the time until all ranks are done, which a step with a barrier
/// takes. period: the long-run time of a step where every rank starts its next step as soon as it
/// is done with the current step; see step_period.
enum class objective : unsigned char { stage_local_span, makespan, period };

}  // namespace schedules

namespace detail {
using namespace schedules;
}  // namespace detail

}  // namespace pp
