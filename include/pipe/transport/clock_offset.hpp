// SPDX-License-Identifier: BSL-1.0
//
// The offset between two clocks, such as the clocks of two machines, from meetings: at each meeting
// both sides read their own clock before they come and after the other side has come. Nothing is
// assumed about the network, not even that both directions are equally fast.
#pragma once

#include <climits>

namespace pp::detail {

/// The readings of one side's clock at a meeting: before the side tells that it has come, and after
/// it has heard that all have come.
///
/// units: nanoseconds
struct meeting {
  long before = 0, after = 0;
};

/// A clock's reading minus the reading of another clock at the same time, up to an error.
struct clock_offset {
  long value = 0, error = 0;
};

/// The offset of the clock of `there` to the clock of `here`, from readings at the same meetings.
/// The error is half a round trip, put together from the fastest message each way.
///
/// A side leaves after the other side has come, so by a common clock there.before <= here.after and
/// here.before <= there.after; by their own clocks
/// there.before - here.after <= offset <= there.after - here.before. All meetings together give the
/// narrowest bounds: the lower from a meeting to which `there` came last, the upper from a meeting
/// to which `here` came last.
///
/// shape: here[meetings], there[meetings]
/// needs: at least one meeting; the clocks advance equally fast while they last
/// law:   |offset - value| <= error, as either side leaves a meeting after the other has come
constexpr clock_offset offset_of(meeting const* there, meeting const* here, int meetings) {
  long least = LONG_MIN, most = LONG_MAX;
  for (int i = 0; i < meetings; ++i) {
    long const low = there[i].before - here[i].after, high = there[i].after - here[i].before;
    if (low > least) least = low;
    if (high < most) most = high;
  }
  return {least + (most - least) / 2, (most - least + 1) / 2};
}

}  // namespace pp::detail
