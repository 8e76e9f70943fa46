// SPDX-License-Identifier: BSL-1.0
//
// Scheduling problems as JSON: there and back, of pipelines, and what is refused.
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "message_of.hpp"

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/problem_file.hpp>
#include <pipe/report/write_file.hpp>

#include <train/folder.hpp>

namespace {

using namespace pp;
using schedules::problem_json, schedules::read_problem, schedules::run_time_problem;

struct Net : Model<Input<6>, Linear<8>, ReLU, Linear<8>, Tanh, Linear<8>, GELUTanh, Linear<8>,
                   Linear<5>, MSE> {};

template <class P>
void check_same_size(P const& a, run_time_problem const& b) {
  CHECK(a.ranks == b.ranks);
  CHECK(a.chunks == b.chunks);
  CHECK(a.micro_batches == b.micro_batches);
  CHECK(a.hop == b.hop);
  CHECK(a.bandwidth == b.bandwidth);
  CHECK(a.limit == b.limit);
  REQUIRE(std::size_t(a.rooms.size()) == b.rooms.size());
  for (std::size_t i = 0; i < b.rooms.size(); ++i)
    CHECK(a.rooms[decltype(a.rooms.size())(i)] == b.rooms[i]);
  REQUIRE(b.costs.size() == std::size_t(a.chunks));
}
void check_same_times(schedules::chunk_cost const& a, schedules::chunk_cost const& b) {
  CHECK(a.forward == b.forward);
  CHECK(a.backward_input == b.backward_input);
  CHECK(a.backward_weight == b.backward_weight);
  CHECK(a.recompute == b.recompute);
  CHECK(a.memory.forward == b.memory.forward);
  CHECK(a.memory.backward_input == b.memory.backward_input);
  CHECK(a.memory.backward_weight == b.memory.backward_weight);
  CHECK(a.memory.recompute == b.memory.recompute);
  CHECK(a.hidden == b.hidden);
  CHECK(a.hop == b.hop);
  CHECK(a.bandwidth == b.bandwidth);
}
template <class P>
void check_same(P const& a, run_time_problem const& b) {
  check_same_size(a, b);
  for (int c = 0; c < a.chunks; ++c) {
    INFO("chunk " << c);
    check_same_times(a.cost(c), b.cost(c));
    CHECK(a.cost(c).bytes == b.cost(c).bytes);
  }
}

/// Numbers of all sizes.
struct dice {
  std::mt19937_64 next;
  long up_to(long most) { return most == 0 ? 0 : long(next() >> (1 + next() % 63)) % (most + 1); }
  long maybe(long most) { return next() % 2 == 0 ? -1 : up_to(most); }
};

run_time_problem random_problem(dice& roll) {
  run_time_problem p;
  p.ranks = 1 + int(roll.up_to(9));
  p.chunks = 1 + int(roll.up_to(30));
  p.micro_batches = 1 + int(roll.up_to(1000));
  long const most = (1L << 55) / p.chunks / (p.micro_batches + p.ranks);
  p.hop = roll.up_to(most);
  p.bandwidth = roll.up_to((1L << 60) - 1);
  p.limit = roll.up_to((1L << 60) - 1);
  for (long rooms = roll.up_to(p.ranks); rooms > 0; --rooms)
    p.rooms.push_back(roll.up_to((1L << 60) - 1));
  for (int c = 0; c < p.chunks; ++c) {
    long const kept = roll.up_to(most), freed = roll.up_to(kept);
    p.costs.push_back({roll.up_to(most),
                       roll.up_to(most),
                       roll.up_to(most),
                       {kept, -freed, freed - kept, roll.up_to(most)},
                       roll.up_to(most),
                       roll.up_to(most),
                       roll.maybe(most),
                       roll.maybe(most),
                       roll.maybe((1L << 60) - 1)});
  }
  return p;
}

/// With limits of its ranks, since the memory limit is below what its fullest rank would have.
constexpr long too_little =
    Pipeline<Net, Stages<4>, MicroBatches<12>, MicroBatchSize<64>, Searched<>>::plan.rank_bytes[0] -
    1;
using Limited = Planned<Net, Stages<4>, MicroBatches<12>, MicroBatchSize<64>, Searched<>,
                        MemoryLimit<too_little>>;

template <class P>
void problem_is_of() {
  run_time_problem const read = read_problem(explain_problem<P>(), "f");
  auto const& times = P::compiled::times();
  check_same_size(times, read);
  for (int c = 0; c < times.chunks; ++c) {
    check_same_times(times.cost(c), read.cost(c));
    CHECK((read.cost(c).bytes > 0) == (c + 1 < times.chunks));
  }
}

bool has(std::string const& text, std::string const& part) { return text.find(part) != text.npos; }

/// A good problem with one text in place of another.
std::string with(std::string const& old, std::string const& put) {
  std::string text = problem_json(schedules::unequal_times(2, 3, {{1, 2, 3}, {4, 5, 6}}, 7));
  std::size_t const at = text.find(old);
  REQUIRE(at != text.npos);
  return text.replace(at, old.size(), put);
}
std::string refusal(std::string const& text) {
  return message_of([&] { read_problem(text, "f"); });
}

}  // namespace

TEST_CASE("a problem comes back from its text as it was") {
  dice roll{};
  for (int trial = 0; trial < 300; ++trial) {
    run_time_problem const p = random_problem(roll);
    std::string const text = problem_json(p, {"a \"name\"", "us", "MB"});
    run_time_problem const back = read_problem(text, "f");
    check_same(p, back);
    CHECK(problem_json(back, {"a \"name\"", "us", "MB"}) == text);
  }
  auto const equal = schedules::equal_times(4, 8, {3, 4, 5, {6, -1, -5}}, 2, 2);
  check_same(equal, read_problem(problem_json(equal), "f"));
}

TEST_CASE("the problem of a pipeline is the one that its schedule is made for") {
  problem_is_of<Pipeline<Net, Stages<4>, MicroBatches<6>, ZeroBubbleH1>>();
  problem_is_of<Pipeline<Net, Stages<4>, MicroBatches<4>, Interleaved<2>, RecomputeAll>>();
  problem_is_of<Planned<Net, Stages<4>, MicroBatches<6>, ZeroBubbleH1>>();
  problem_is_of<Limited>();
  CHECK(read_problem(explain_problem<Limited>(), "f").rooms.size() == 4);
  using Trainer = Planned<Net, Stages<3>, MicroBatches<4>>;
  std::string const text = explain_problem<Trainer>();
  INFO(text);
  CHECK(has(text,
            "Net, 1f1b\",\n\"unit_of_time\":\"FLOP\",\n\"unit_of_memory\":\"B\",\n\"ranks\":3,"));
  // The bytes that a rank sends on: 8 numbers of 4 bytes for each sample.
  CHECK(has(text, "\"bytes\":" + std::to_string(Trainer::plan().links.begin()->values) + ","));
}

TEST_CASE("a problem is written to a file") {
  temporary_folder const folder;
  std::string const path = folder.file("problem.json");
  // [file]
  using Trainer = pp::Planned<Net, pp::Stages<3>, pp::MicroBatches<4>>;  // or a Pipeline
  pp::files::write_file(path, pp::explain_problem<Trainer>());
  // [/file]
  check_same(read_problem(explain_problem<Trainer>(), "f"), read_problem(content(path), path));
}

TEST_CASE("members may stand in any order, and further ones are passed over") {
  std::string const text = R"({"note": {"a": [1.5, null]}, "costs": [{"memory": [1, 0, -1, 0],
      "backward_weight": 3, "backward_input": 2, "forward": 1, "by": "hand"}],
      "micro_batches": 2, "chunks": 1, "ranks": 1})";
  run_time_problem const p = read_problem(text, "f");
  check_same(schedules::unequal_times(1, 2, {{1, 2, 3}}), p);
}

TEST_CASE("a text that is no problem is refused in a line") {
  CHECK(refusal(with("7", "7")) == "no error");
  CHECK(refusal("") ==
        "f: byte 0: expected '{' before ranks, chunks, micro_batches and costs, "
        "found the end");
  CHECK(refusal("{}") == "f: ranks is missing");
  CHECK(refusal(R"({"ranks":2,"chunks":2,"micro_batches":3})") == "f: costs is missing");
  CHECK(refusal(with("\"forward\":1,", "")) == "f: chunk 0: forward is missing");
  CHECK(refusal(with("\"forward\":4,", "\"forward\":4,\"forward\":4,")) ==
        "f: chunk 1: forward occurs twice");
  CHECK(refusal(with("\"ranks\"", "\"chunks\"")) == "f: chunks occurs twice");
  CHECK(has(refusal(with("\"forward\":1,", "\"forward\":-1,")),
            ": expected a whole number, found '-1'"));
  CHECK(has(refusal(with("\"forward\":1,", "\"forward\":1.5,")),
            ": expected a whole number, found '1.5'"));
  CHECK(has(refusal(with("\"forward\":1,", "\"forward\":9223372036854775808,")),
            "f: chunk 0: byte "));
  CHECK(refusal(with("\"forward\":1,", "\"forward\":4611686018427387904,")) ==
        "f: times, memory or limits are too large to be added up: expected sums below 2^60");
  CHECK(refusal(with("[1,0,-1,0]", "[1,-4611686018427387904,-1,0]")) ==
        "f: times, memory or limits are too large to be added up: expected sums below 2^60");
  CHECK(refusal(with("\"hop\":7", "\"hop\":4611686018427387904")) ==
        "f: times, memory or limits are too large to be added up: expected sums below 2^60");
  CHECK(refusal(with("\"limit\":0", "\"limit\":4611686018427387904")) ==
        "f: times, memory or limits are too large to be added up: expected sums below 2^60");
  CHECK(has(refusal(with("[1,0,-1,0]", "[1,0,-9223372036854775808,0]")),
            "expected a number above -2^63, found '-9223372036854775808'"));
  CHECK(has(refusal(with("[1,0,-1,0]", "[1,0,--1,0]")), "expected a whole number, found '--1'"));
  CHECK(has(refusal(with("[1,0,-1,0]", "[1,0,-,0]")), "expected a whole number, found '-'"));
  CHECK(refusal(with("[1,0,-1,0]", "[1,0,-1]")) ==
        "f: chunk 0: memory: expected what F, B, W and R add, four numbers, got 3");
  CHECK(has(refusal(with("[1,0,-1,0]", "[1,0,-1,0,0]")), ": expected ']' after four numbers"));
  CHECK(refusal(with("\"ranks\":2", "\"ranks\":0")) ==
        "f: expected from 1 to 268435456 ranks, chunks and micro-batches, got 0");
  CHECK(refusal(with("\"chunks\":2", "\"chunks\":3")) == "f: expected costs of 3 chunks, got 2");
  CHECK(refusal(with("\"chunks\":2", "\"chunks\":4000000000")) ==
        "f: expected from 1 to 268435456 ranks, chunks and micro-batches, got 4000000000");
  CHECK(refusal(with("\"micro_batches\":3", "\"micro_batches\":200000000")) ==
        "f: 2 chunks and 200000000 micro-batches exceed the limit of 268435456 actions");
  CHECK(refusal(with("\"rooms\":[]", "\"rooms\":[1,2,3]")) ==
        "f: expected rooms of at most 2 ranks, got 3");
  std::string const good = with("7", "7");
  for (std::size_t size = 0; size + 2 < good.size(); ++size) {
    INFO(size);
    CHECK(has(refusal(good.substr(0, size)), "f: "));
  }
}
