// error: wrong::schedule_is_not_readable, .*FromCSV<.*order.*>, .*Because<.*wrong_rank>.*AtLine<2>.*AtColumn<5>
// SPDX-License-Identifier: BSL-1.0
//
// A stage that no placement has on the rank of its line.
#include <pipe/schedule.hpp>
#include <pipe/schedule/families/from_csv.hpp>

#ifdef PIPE_EXPECT_OK
constexpr char order[] = "0F0,0B0\n1F0,1B0\n";
#else
constexpr char order[] = "0F0,0B0\n1F0,0F0,1B0\n";
#endif
constexpr auto table = pp::schedules::make_table<pp::FromCSV<order>, 2, 1>();
