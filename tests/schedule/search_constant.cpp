// SPDX-License-Identifier: BSL-1.0
//
// The search inside the compiler, within its default limits: on the published problem of 32
// micro-batches it stays below what the paper's own search has.
#include <pipe/schedule/search/search.hpp>

namespace {

using namespace pp;
using namespace pp::schedules;

constexpr auto question =
    equal_times(8, 32, {29802, 29428, 19530, {303104, -172032, -131072}}, 577);
constexpr long work = 32 * (29802 + 29428 + 19530);
static_assert(schedule_policy<Searched<>> && schedule_policy<ZeroBubble1P> &&
              schedule_policy<ZeroBubble2P>);

constexpr auto one_p = make_table<ZeroBubble1P, 8, 32>(question);
static_assert(validate(question, one_p).ok());
static_assert(peak_memory(question, one_p, 0) <= 8 * 303104);
constexpr long one_p_span = certify(question, one_p).achieved.stage_local_span;
static_assert(10000 * (one_p_span - work) < 1045.5 * one_p_span);

constexpr auto two_p = make_table<ZeroBubble2P, 8, 32>(question);
static_assert(validate(question, two_p).ok());
static_assert(peak_memory(question, two_p, 0) <= 16 * 303104);
constexpr long two_p_span = certify(question, two_p).achieved.stage_local_span;
static_assert(10000 * (two_p_span - work) < 22.5 * two_p_span);

// On a V: as good as ZB-V where that fits.
constexpr auto folded = equal_times(8, 32, {10, 10, 10, {2, -1, -1}}, 0, 2);
constexpr auto folded_table = make_table<Searched<1, 1, placement::vee>, 8, 32>(folded);
static_assert(validate(folded, folded_table).ok());
static_assert(certify(folded, folded_table).gap() == 0);

// Fewer micro-batches than ranks, unequal times, a limit of the problem's own.
constexpr auto uneven = [] {
  auto answer = unequal_times(
      3, 2, {{4, 5, 2, {6, -2, -4}}, {9, 7, 7, {3, 0, -3}}, {1, 1, 0, {5, 1, -6}}}, 2);
  answer.limit = 7;
  return answer;
}();
static_assert(validate(uneven, make_table<Searched<>, 3, 2>(uneven)).ok());
static_assert(Searched<>::refuses(uneven) == nullptr);

constexpr auto impossible = [] {
  auto answer = uneven;
  answer.limit = 5;
  return answer;
}();
static_assert(Searched<>::refuses(impossible) != nullptr);

}  // namespace
