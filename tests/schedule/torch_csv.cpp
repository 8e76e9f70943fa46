// SPDX-License-Identifier: BSL-1.0
//
// PyTorch's form of schedules: there and back, and every fault with line, column and reason.
#include "catch.hpp"
#include <pipe/schedule/catalog.hpp>
#include <pipe/schedule/torch_csv.hpp>

#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::detail;
using enum pp::action_kind;

TEST_CASE("actions have PyTorch's names", "[torch_csv]") {
  REQUIRE(torch_name(action{forward, 2, 0}) == "2F0");
  REQUIRE(torch_name(action{backward, 1, 3}) == "1B3");
  REQUIRE(torch_name(action{backward_input, 1, 3}) == "1I3");
  REQUIRE(torch_name(action{backward_weight, 1, 3}) == "1W3");
  REQUIRE(torch_name(action{update, 1, 3}).empty());
  REQUIRE(torch_name(rank_step{step_kind::send, {forward, 0, 1}, 1}) == "0SEND_F1");
  REQUIRE(torch_name(rank_step{step_kind::receive, {forward, 0, 1}, 0}) == "1RECV_F1");
  REQUIRE(torch_name(rank_step{step_kind::send, {backward, 1, 1}, 0}) == "1SEND_B1");
  REQUIRE(torch_name(rank_step{step_kind::receive, {backward_input, 1, 1}, 1}) == "0RECV_B1");
  auto const problem = equal_times(2, 2);
  REQUIRE(torch_csv(make_dynamic_table<OneFOneB>(problem)) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST_CASE("every family goes there and comes back", "[torch_csv]") {
  for (family const& f : catalog)
    for (int p : {1, 2, 4})
      for (bool transfers : {false, true}) {
        int const m = 2 * p + 2,
                  chunks = chunks_for(f.where, p, f.chunks_per_rank > 0 ? f.chunks_per_rank : 2);
        run_time_problem const problem{
            p, chunks, m, 1, std::vector<chunk_cost>(std::size_t(chunks), chunk_cost{3, 2, 4})};
        if (f.refuses(problem)) continue;
        auto table = make_dynamic_table(f, problem);
        auto const read =
            read_torch_csv(transfers ? torch_csv(communicate(problem, table)) : torch_csv(table));
        // Among transfers no two actions follow each other.
        for (int r = 0; r < p && transfers; ++r)
          for (action& a : table.row(r)) a.with_next = false;
        INFO(f.name << ", p " << p);
        REQUIRE(read.chunks == problem.chunks);
        REQUIRE(read.micro_batches == m);
        REQUIRE(read.table.trains == table.trains);
        REQUIRE(torch_csv(read.table) == torch_csv(table));
        if (table.mini_batch == 0) REQUIRE(validate(problem, read.table).ok());
      }
}

TEST_CASE("what PyTorch writes beside is understood", "[torch_csv]") {
  auto const read = read_torch_csv("0F0,,0F1,,,0B0, 0B1 \r\n,1F0,1RECV_F1,1F1,1B0,1B1");
  REQUIRE(read.table.ranks() == 2);
  REQUIRE(read.table.size(0) == 4);
  REQUIRE(
      read.table.row(1) ==
      std::vector<action>{{forward, 1, 0}, {forward, 1, 1}, {backward, 1, 0}, {backward, 1, 1}});
  REQUIRE(read.table.where == placement::straight);
  // Two chunks per rank: round and round, or down and back up.
  REQUIRE(read_torch_csv("0F0,2F0\n1F0,3F0\n").table.where == placement::loop);
  REQUIRE(read_torch_csv("0F0,3F0\n1F0,2F0\n").table.where == placement::vee);
  // What a spreadsheet adds: a byte order mark, and blank lines at the end; one in the middle is a
  // rank with nothing.
  auto const saved = read_torch_csv(
      "\xEF\xBB\xBF"
      "0F0,0B0\r\n\r\n2F0,\t2B0\r\n \r\n\n");
  REQUIRE(saved.table.ranks() == 3);
  REQUIRE(saved.table.size(1) == 0);
  REQUIRE(saved.table.row(2) == std::vector<action>{{forward, 2, 0}, {backward, 2, 0}});
}

TEST_CASE("sharded parameters and actions that overlap are understood", "[torch_csv]") {
  auto const read = read_torch_csv(
      "0UNSHARD,0F0,1F0,(0F1;1B0)OVERLAP_F_B,1RESHARD,1F1,0REDUCE_GRAD,1REDUCE_GRAD0,0B0,(1B1)"
      "OVERLAP_F_B,0B1");
  REQUIRE(read.table.row(0) == std::vector<action>{{forward, 0, 0},
                                                   {forward, 1, 0},
                                                   {forward, 0, 1, 0, true},
                                                   {backward, 1, 0},
                                                   {forward, 1, 1},
                                                   {backward, 0, 0},
                                                   {backward, 1, 1},
                                                   {backward, 0, 1}});
  run_time_problem const problem{1, 2, 2, 0, std::vector<chunk_cost>(2)};
  REQUIRE(validate(problem, read.table).ok());
}

TEST_CASE("what is wrong has a line, a column and a reason", "[torch_csv]") {
  struct bad {
    char const *text, *message;
  };
  for (bad const& b :
       {bad{"", "line 1, column 1: expected at least 1 action, found none"},
        bad{"\n\n", "line 1, column 1: expected at least 1 action, found none"},
        bad{"0UNSHARD,0SEND_F1\n", "line 1, column 1: expected at least 1 action, found none"},
        bad{"0F0,0F1\n1F0,1Q1", "line 2, column 5: '1Q1' is no action that is known here"},
        bad{"0F0, F1", "line 1, column 6: expected the number of a stage"},
        bad{"0F0,0F", "line 1, column 5: expected the number of a micro-batch"},
        bad{"0F-1", "line 1, column 1: expected the number of a micro-batch"},
        bad{"-1F0", "line 1, column 1: expected the number of a stage"},
        bad{"0F0x", "line 1, column 1: '0F0x' goes on after its micro-batch"},
        bad{"99999999F0", "line 1, column 1: a stage 99999999 is too large"},
        bad{"0F99999999999999", "line 1, column 1: a micro-batch 99999999999999 is too large"},
        bad{"0F99999999999999999999",
            "line 1, column 1: a micro-batch 99999999999999999999 is too large"},
        bad{"0F0,1REDUCE_GRADx", "line 1, column 5: expected the number of a micro-batch"},
        bad{"0F0, (1F0;1G1)OVERLAP_F_B",
            "line 1, column 11: '1G1' is no action that is known here"},
        bad{"(0F0;)OVERLAP_F_B", "line 1, column 6: expected the number of a stage"},
        bad{"(0F0;1B0", "line 1, column 1: '(0F0;1B0' does not end with )OVERLAP_F_B"},
        bad{"0F0\n2F0\n1F0\n",
            "line 2, column 1: stage 2 cannot be on rank 1: straight, the placement "
            "that fits best, has it on rank 2"},
        bad{"0F0,0B0\n1F0,0F2\n", "line 2, column 5: stage 0 cannot be on rank 1: straight"},
        bad{"0F0,3F0\n1F0,2F0,(2B0;0B0)OVERLAP_F_B\n",
            "line 2, column 14: stage 0 cannot be on rank 1: vee"},
        bad{"0F0\n10F0\n", "line 2, column 1: 11 stages on 2 ranks: no placement known here"},
        bad{"0F0,\x1b[31m", "line 1, column 5: expected the number of a stage"},
        bad{"0\x1b[31mF0\xff", "line 1, column 1: '0\\x1b[31mF0\\xff' is no action"},
        bad{"0QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ",
            "line 1, column 1: '0QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ...' is no action"},
        bad{"0F0,1F0,2F0\n", ""}}) {
    INFO(b.text);
    std::string message;
    try {
      read_torch_csv(b.text);
    } catch (data_error const& e) {
      message = e.what();
    }
    REQUIRE(message.substr(0, std::string(b.message).size()) == b.message);
    if (*b.message == '\0') REQUIRE(message.empty());
  }
  try {
    read_torch_csv(std::string("0F0\0", 4));
    FAIL("a NUL is no part of an action");
  } catch (data_error const& e) {
    REQUIRE(e.what() == std::string("line 1, column 1: '0F0\\x00' goes on after its micro-batch"));
  }
}

}  // namespace
