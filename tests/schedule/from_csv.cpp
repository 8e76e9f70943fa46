// SPDX-License-Identifier: BSL-1.0
//
// Schedules that are texts of a program: the compiler reads and proves them, and a pipeline trains
// with them as one stage does.
#include <string_view>
#include <vector>

#include "catch.hpp"
#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/catalog/torch_csv.hpp>
#include <pipe/schedule/families/from_csv.hpp>

namespace {

using namespace pp;
using namespace pp::schedules;

// [from_csv]
// What PyTorch's ScheduleZBVZeroBubble writes for two ranks, with format="compute_only".
constexpr char zero_bubble_v[] =
    "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0F3,0I0,0W0,3F2,3I2,3W2,0I1,0W1,3F3,3I3,3W3,0I2,0W2,0I3,"
    "0W3\n"
    ",1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,2I3,1I3,1W2,2W3,"
    "1W3\n";

struct Net
    : Model<Input<3>, Linear<8>, Tanh, Linear<8>, Tanh, Linear<8>, Tanh, Linear<2>, CrossEntropy> {
};
using Trainer =
    Pipeline<Net, Stages<4>, MicroBatches<4>, MicroBatchSize<2>, FromCSV<zero_bubble_v>, SGD>;

static_assert(Trainer::plan.rank_count == 2 && Trainer::plan.bubble < 0.2);
// [/from_csv]

// The default format, "compute_comms": pairs, transfers, waits, and operations on sharded
// parameters; some backwards are split and some are not.
constexpr char dual_pipe_v[] =
    "0UNSHARD,3UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,0F2,0SEND_F2,3F0,3RECV_F1,3I0,"
    "3SEND_B0,3W0,3F1,3RECV_F2,0RECV_B0,(0F3;3B1)OVERLAP_F_B,0SEND_F3,3SEND_B1,"
    "(3F2;0B0)OVERLAP_F_B,0WAIT_SEND_F0,3RECV_F3,0RECV_B1,3B2,3SEND_B2,(3F3;0B1)OVERLAP_F_B,"
    "0WAIT_SEND_F1,0RECV_B2,3B3,3SEND_B3,3REDUCE_GRAD,0RECV_B3,3WAIT_REDUCE_GRAD,3RESHARD,"
    "0I2,0WAIT_SEND_F2,0W2,0I3,0WAIT_SEND_F3,0W3,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD,"
    "3WAIT_SEND_B0,3WAIT_SEND_B1,3WAIT_SEND_B2,3WAIT_SEND_B3\n"
    "1UNSHARD,2UNSHARD,1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1RECV_F2,1F1,2F1,2SEND_F1,2RECV_B0,"
    "1F2,2B0,2WAIT_SEND_F0,(2F2;1B0)OVERLAP_F_B,2SEND_F2,1SEND_B0,1RECV_F3,2RECV_B1,"
    "(1F3;2B1)OVERLAP_F_B,2WAIT_SEND_F1,(2F3;1B1)OVERLAP_F_B,2SEND_F3,1SEND_B1,2RECV_B2,2B2,"
    "2WAIT_SEND_F2,1B2,1SEND_B2,2RECV_B3,2I3,2WAIT_SEND_F3,1I3,1SEND_B3,2W3,2REDUCE_GRAD,"
    "2WAIT_REDUCE_GRAD,2RESHARD,1W3,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,1WAIT_SEND_B0,"
    "1WAIT_SEND_B1,1WAIT_SEND_B2,1WAIT_SEND_B3\n";
// A view, which ends where it says.
constexpr char looped[] =
    "0F0,0F1,2F0,2F1,,,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,,2B2,,2B3,,0B2,,0B3\n"
    ",1F0,1F1,,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,,1B2,,1B3\n"
    "not of the schedule";
constexpr std::string_view interleaved(looped, sizeof looped - sizeof "not of the schedule");

template <class Schedule>
std::vector<float> trained() {
  using Cut = std::conditional_t<std::is_same_v<Schedule, OneFOneB>, Stages<1>, Stages<4>>;
  using OfCut = Pipeline<Net, Cut, MicroBatches<4>, MicroBatchSize<2>, Schedule, SGD>;
  std::vector<float> inputs(OfCut::samples * 3);
  std::vector<int> labels(OfCut::samples);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = float(i % 7) / 7;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = int(i % 2);
  OfCut trainer({.seed = 3, .optimizer = {.learning_rate = 0.1}});
  std::vector<float> numbers;
  for (int step = 0; step < 4; ++step)
    numbers.push_back(float(trainer.step({inputs, labels}).loss));
  for (auto const& p : trainer.parameters())
    numbers.insert(numbers.end(), p.values.begin(), p.values.end());
  return numbers;
}

TEST_CASE("a schedule of a text trains as one stage does", "[from_csv]") {
  std::vector<float> const expected = trained<OneFOneB>();
  REQUIRE(trained<FromCSV<zero_bubble_v>>() == expected);
  REQUIRE(trained<FromCSV<dual_pipe_v>>() == expected);
  REQUIRE(trained<FromCSV<interleaved>>() == expected);
}

// The reader at compile time and that at run time are one, and so are their tables.
template <auto const& Text>
void check_table(placement where, int chunks_per_rank, bool splits_backward) {
  using schedule = FromCSV<Text>;
  read_schedule const read = read_torch_csv(detail::text_of(Text));
  constexpr auto table = make_table<schedule, 2, 4>();
  REQUIRE(torch_csv(table) == torch_csv(read.table));
  REQUIRE(table.where == where);
  REQUIRE(read.table.where == where);
  REQUIRE(schedule::chunks_per_rank == chunks_per_rank);
  REQUIRE(schedule::splits_backward == splits_backward);
  REQUIRE(table.trains == read.table.trains);
}

constexpr char forward_only[] = "\xEF\xBB\xBF\"0F0\";0F1\r0F2\r\n;;\n";
constexpr char two_copies[] = "0F0,1F1,1B1,0B0,0F2,1F3,1B3,0B2\n1F0,0F1,1B0,0B1,1F2,0F3,1B2,0B3";

TEST_CASE("the compiler reads a text as a program does", "[from_csv]") {
  check_table<zero_bubble_v>(placement::vee, 2, true);
  check_table<dual_pipe_v>(placement::vee, 2, true);
  check_table<interleaved>(placement::loop, 2, false);
  check_table<two_copies>(placement::bidirectional, 2, false);
  using plain = detail::csv_schedule<forward_only>;
  static_assert(plain::facts.ranks == 2 && !plain::trains && plain::rows.size(0) == 2);
  static_assert(plain::rows.at(1, 0) == action{action_kind::forward, 0, 2});
}

TEST_CASE("a text has one number of ranks and micro-batches", "[from_csv]") {
  REQUIRE(why_refused<FromCSV<interleaved>>(2, 4) == nullptr);
  for (auto [ranks, micro_batches] : {std::pair{2, 8}, {4, 4}, {1, 4}})
    REQUIRE(why_refused<FromCSV<interleaved>>(ranks, micro_batches) ==
            std::string_view("is for 2 ranks and 4 micro-batches"));
}

TEST_CASE("a plan without a pipeline has the schedule of a text, too", "[from_csv]") {
  auto const& plan = Planned<Net, Stages<4>, MicroBatches<4>, MicroBatchSize<2>,
                             FromCSV<zero_bubble_v>, SGD>::plan();
  REQUIRE(plan.bubble == Trainer::plan.bubble);
  REQUIRE(plan.schedule == std::string_view("from-csv"));
}

}  // namespace
