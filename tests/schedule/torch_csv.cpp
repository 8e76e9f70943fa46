// SPDX-License-Identifier: BSL-1.0
//
// PyTorch's form of schedules: there and back, and every fault with line, column and reason.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catch.hpp"
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/catalog/torch_csv.hpp>

#include "reference.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using enum pp::schedules::action_kind;

TEST_CASE("actions have PyTorch's names", "[torch_csv]") {
  REQUIRE(torch_name(action{forward, 2, 0}) == "2F0");
  REQUIRE(torch_name(action{backward, 1, 3}) == "1B3");
  REQUIRE(torch_name(action{backward_input, 1, 3}) == "1I3");
  REQUIRE(torch_name(action{backward_weight, 1, 3}) == "1W3");
  REQUIRE(torch_name(action{update, 1, 3}).empty());
  REQUIRE(torch_name(rank_instruction{instruction_kind::send, {forward, 0, 1}, 1}) == "0SEND_F1");
  REQUIRE(torch_name(rank_instruction{instruction_kind::receive, {forward, 0, 1}, 0}) ==
          "1RECV_F1");
  REQUIRE(torch_name(rank_instruction{instruction_kind::send, {backward, 1, 1}, 0}) == "1SEND_B1");
  REQUIRE(torch_name(rank_instruction{instruction_kind::receive, {backward_input, 1, 1}, 1}) ==
          "0RECV_B1");
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
        auto const table = make_dynamic_table(f, problem);
        auto const read =
            read_torch_csv(transfers ? torch_csv(communicate(problem, table)) : torch_csv(table));
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

// Beside transfers PyTorch's executor needs a wait for each send, after the backward that shows
// that it has arrived, and the reduction of a stage's gradients, which also scales them.
TEST_CASE("transfers come with their waits and reductions", "[torch_csv]") {
  auto const problem = equal_times(2, 2);
  REQUIRE(torch_csv(communicate(problem, make_dynamic_table<OneFOneB>(problem))) ==
          "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0WAIT_SEND_F0,0RECV_B1,0B1,0WAIT_SEND_F1,"
          "0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n"
          "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1SEND_B1,"
          "1WAIT_SEND_B0,1WAIT_SEND_B1\n");
  // A pair stays one: what it receives stands before it, what it sends after it.
  run_time_problem const more{2, 4, 4, 0, std::vector<chunk_cost>(4, chunk_cost{1, 1, 1})};
  auto const table = make_dynamic_table<Paired<DualPipeV>>(more);
  std::string const text = torch_csv(communicate(more, table));
  INFO(text);
  REQUIRE(text.find("3RECV_F2,0RECV_B0,(3F2;0B0)OVERLAP_F_B,0WAIT_SEND_F0,") != text.npos);
  REQUIRE(torch_csv(read_torch_csv(text).table) == torch_csv(table));
}

// Files that PyTorch 2.15.0 wrote, with its default format, "compute_comms", and with
// "compute_only": the same tables.
TEST_CASE("recorded files of PyTorch are read", "[torch_csv]") {
  for (std::string const name :
       {"DualPipeV", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"}) {
    INFO(name);
    auto const recorded = [&](char const* format) {
      std::ifstream file(PIPE_TESTS_FOLDER "/schedule/torch/" + name + "." + format + ".csv");
      REQUIRE(file.is_open());
      return read_torch_csv(std::string(std::istreambuf_iterator<char>(file), {}));
    };
    auto const all = recorded("compute_comms"), computed = recorded("compute_only");
    REQUIRE(all.table.where == computed.table.where);
    REQUIRE(all.table.where == (name[0] == 'I' ? placement::loop : placement::vee));
    REQUIRE(torch_csv(all.table) == torch_csv(computed.table));
    REQUIRE(all.micro_batches == 4);
    run_time_problem const problem{2, 4, 4, 0, std::vector<chunk_cost>(4, chunk_cost{1, 1, 1})};
    REQUIRE(validate(problem, all.table).ok());
  }
}

// Tables of PyTorch 2.15.0, and the family of the same order. PyTorch's groups have M / (M div P)
// micro-batches: with 10 on 4 ranks 5 each.
TEST_CASE("PyTorch's interleaved zero bubble is the family's table", "[torch_csv]") {
  auto const same = [&]<class Policy>(Policy, char const* file_name, int p, int v, int m) {
    INFO(file_name);
    std::ifstream file(std::string(PIPE_TESTS_FOLDER "/schedule/torch/InterleavedZeroBubble") +
                       file_name + ".compute_only.csv");
    REQUIRE(file.is_open());
    auto const theirs = read_torch_csv(std::string(std::istreambuf_iterator<char>(file), {}));
    REQUIRE(theirs.micro_batches == m);
    auto const ours = make_dynamic_table<Policy>(equal_times(p, m, {}, 0, v));
    REQUIRE(torch_csv(theirs.table) == torch_csv(ours));
  };
  same(InterleavedZeroBubble<2>{}, "", 2, 2, 4);
  same(InterleavedZeroBubble<2>{}, "_p4v2m8", 4, 2, 8);
  same(InterleavedZeroBubble<3>{}, "_p4v3m12", 4, 3, 12);
  same(InterleavedZeroBubble<2, 5>{}, "_p4v2m10", 4, 2, 10);
}

// A spreadsheet quotes cells, those of pairs where it separates cells by semicolons, and fills
// lines up with empty ones.
TEST_CASE("what spreadsheets write is read", "[torch_csv]") {
  std::string const plain = "0F0,0F1,(1F0;0B1)OVERLAP_F_B,1F1,1B0,1B1,0B0\n";
  for (std::string const text :
       {"\"0F0\",\"0F1\",\"(1F0;0B1)OVERLAP_F_B\",\"1F1\",\"1B0\",\"1B1\",\"0B0\"\r\n",
        "0F0;0F1;\"(1F0;0B1)OVERLAP_F_B\";1F1;1B0;1B1;0B0\r\n;;;;;;\r\n",
        "0F0;0F1;(1F0;0B1)OVERLAP_F_B;1F1;1B0;1B1;0B0\n",
        "0F0\t0F1\t\"(1F0; 0B1)OVERLAP_F_B\"\t1F1\t\t1B0\t1B1\t0B0\n",
        "\"\", \"0F0\" , \" 0F1 \",( 1F0;0B1 )OVERLAP_F_B,1F1,1B0,1B1,0B0,\"\"\r\"\",,\r"}) {
    INFO(text);
    REQUIRE(torch_csv(read_torch_csv(text).table) == plain);
  }
  auto const lines = read_torch_csv("0F0,0B0\r1F0,1B0\r\r3F0,3B0\r");
  REQUIRE(lines.table.ranks() == 4);
  REQUIRE(lines.table.size(2) == 0);
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
        bad{"0F0,0WAIT_SEND_Q0", "line 1, column 5: '0WAIT_SEND_Q0' is no action that is known"},
        bad{"0F0,0WAIT_SEND_F", "line 1, column 5: expected the number of a micro-batch"},
        bad{"0F0,0WAITING0",
            "line 1, column 5: '0WAITING0' is no action that is known here: "
            "F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, WAIT_SEND_F, WAIT_SEND_B, UNSHARD, "
            "RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD, (...;...)OVERLAP_F_B"},
        bad{"0F0,\"0F1,0B0", "line 1, column 6: '0F1,0B0' goes on after its micro-batch"},
        bad{"0F0,\"0F1\n0B0\"", "line 1, column 5: a cell begins with a quote and does not end"},
        bad{"0F0,\"0F1\"0B0", "line 1, column 5: a cell begins with a quote and does not end"},
        bad{"0F0 0F1", "line 1, column 1: '0F0 0F1' goes on after its micro-batch"},
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
