// SPDX-License-Identifier: BSL-1.0
//
// PyTorch's form of schedules: there and back, and every fault with line, column and reason.
#include <catch2/catch.hpp>
#include <pipe/schedule/catalog.hpp>
#include <pipe/schedule/torch_csv.hpp>

#include "reference.hpp"

namespace {

using namespace pp;
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
        int const m = 2 * p + 2, chunks = chunks_for(f.where, p, f.chunks_per_rank > 0 ? f.chunks_per_rank : 2);
        run_time_problem const problem{p, chunks, m, 1,
                                       std::vector<chunk_cost>(std::size_t(chunks), chunk_cost{3, 2, 4})};
        if (f.refuses(problem)) continue;
        auto const table = make_dynamic_table(f, problem);
        auto const read = read_torch_csv(transfers ? torch_csv(communicate(problem, table)) : torch_csv(table));
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
  REQUIRE(read.table.row(1) ==
          std::vector<action>{{forward, 1, 0}, {forward, 1, 1}, {backward, 1, 0}, {backward, 1, 1}});
  REQUIRE(read.table.where == placement::straight);
  // Two chunks per rank: round and round, or down and back up.
  REQUIRE(read_torch_csv("0F0,2F0\n1F0,3F0\n").table.where == placement::loop);
  REQUIRE(read_torch_csv("0F0,3F0\n1F0,2F0\n").table.where == placement::vee);
}

TEST_CASE("what is wrong has a line, a column and a reason", "[torch_csv]") {
  struct bad {
    char const *text, *message;
  };
  for (bad const& b : {bad{"", "line 1, column 1: there is no action in it"},
                       bad{"\n\n", "line 3, column 1: there is no action in it"},
                       bad{"0F0,0F1\n1F0,1Q1", "line 2, column 5: '1Q1' is no action that is known here"},
                       bad{"0F0, F1", "line 1, column 6: expected the number of a stage"},
                       bad{"0F0,0F", "line 1, column 5: expected the number of a micro-batch"},
                       bad{"0F-1", "line 1, column 1: expected the number of a micro-batch"},
                       bad{"-1F0", "line 1, column 1: expected the number of a stage"},
                       bad{"0F0x", "line 1, column 1: '0F0x' goes on after its micro-batch"},
                       bad{"99999999F0", "line 1, column 1: a stage 99999999 is too large"},
                       bad{"0F99999999999999999999", "line 1, column 1: expected the number of a micro-batch"},
                       bad{"0F0\n2F0\n1F0\n", "line 1, column 1: 3 stages on 3 ranks: no placement known here"},
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
}

}  // namespace
