// SPDX-License-Identifier: BSL-1.0
//
// Schedules that a program makes, drawn by lot: right ones train with the bits of one stage, spoilt
// ones are refused by a sentence or are right again, and none does anything before it is proved. A
// schedule is made once in a process, so each is tried in a process of its own.
#include "catch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <functional>
#include <random>
#include <string_view>

#include <pipe/report/explain.hpp>
#include <pipe/schedule/catalog/torch_csv.hpp>

#include "laws/bit_law.hpp"

#ifdef PIPE_TESTS_LONG

namespace random_schedules {

using namespace pp;
using namespace pp::detail;
using enum schedules::action_kind;
using dice = std::mt19937;

int below(dice& d, int end) { return std::uniform_int_distribution<int>(0, end - 1)(d); }

/// What the policies below fill in.
schedules::dynamic_table* given = nullptr;

template <schedules::placement Where, int Chunks>
struct Given {
  static constexpr char const* name = "given";
  static constexpr schedules::placement where = Where;
  static constexpr int chunks_per_rank = Chunks;
  static constexpr bool splits_backward = true, trains = true;
  static constexpr bool fits_a_constant(int, int) { return false; }
  template <class Problem, class Table>
  static void fill(Problem const&, Table& table) {
    for (int rank = 0; rank < given->ranks(); ++rank)
      for (schedules::action const& a : given->row(rank)) table.push(rank, a);
    if (given->unplaced.any) table.push(given->unplaced.rank, given->unplaced.which);
  }
};

struct Small : Model<Input<3>, Linear<4>, Tanh, Linear<3>, Tanh, Linear<4>, Tanh, Linear<2>, MSE> {
};
constexpr int stages = 4, micro_batches = 5;
template <class... More>
using Trained =
    Pipeline<Small, MicroBatches<micro_batches>, MicroBatchSize<2>, PortableHost, Adam, More...>;
template <schedules::placement Where, int Chunks>
using Many = Trained<Stages<stages>, Given<Where, Chunks>>;

/// An order in which everything comes after what it needs, drawn action by action.
schedules::dynamic_table right_table(dice& d, schedules::placement where, int ranks) {
  auto table = schedules::dynamic_table(ranks, where);
  int done[stages][3] = {};  // micro-batches that are through F, B and W of a chunk
  for (int left = 3 * stages * micro_batches; left > 0;) {
    int const chunk = below(d, stages), kind = below(d, 3), mb = done[chunk][kind];
    if (mb == micro_batches) continue;
    bool const ready = kind == 0 ? chunk == 0 || done[chunk - 1][0] > mb
                       : kind == 1
                           ? done[chunk][0] > mb && (chunk == stages - 1 || done[chunk + 1][1] > mb)
                           : done[chunk][1] > mb;
    if (!ready) continue;
    bool const both = kind == 1 && done[chunk][2] == mb && below(d, 2) == 0;
    schedules::action_kind const kinds[] = {forward, both ? backward : backward_input,
                                            backward_weight};
    table.push(rank_of(where, ranks, chunk), {kinds[kind], chunk, mb});
    ++done[chunk][kind];
    if (both) ++done[chunk][2];
    left -= 1 + both;
  }
  return table;
}

int some_number(dice& d) {
  int const odd[] = {-1, stages, micro_batches, INT_MIN, INT_MAX, 1 << 16, 65535};
  return below(d, 3) == 0 ? odd[below(d, int(std::size(odd)))] : below(d, micro_batches);
}

void spoil(dice& d, schedules::dynamic_table& table) {
  auto& row = table.row(below(d, table.ranks()));
  if (row.empty()) return;
  auto const place = [&] { return row.begin() + below(d, int(row.size())); };
  schedules::action const copy = *place();
  switch (below(d, 8)) {
    case 0: std::swap(*place(), *place()); break;
    case 1: row.erase(place()); break;
    case 2: row.insert(place(), copy); break;
    case 3: place()->chunk = some_number(d); break;
    case 4: place()->micro_batch = some_number(d); break;
    case 5: place()->kind = schedules::action_kind(below(d, 9)); break;
    case 6: place()->version = some_number(d); break;
    default: table.push(some_number(d), copy);
  }
}

enum outcome : int { same_bits, refused, other_bits, other_error };

template <class Trainer>
std::vector<float> trained() {
  Trainer trainer({.seed = 3});
  std::vector<float> numbers;
  for (int step = 0; step < 2; ++step) {
    laws::sample_batch<Trainer> const data(std::uint64_t(5 + step));
    long const samples = Trainer::samples - 3 * step;
    numbers.push_back(float(trainer.step(data.view(samples)).loss));
    numbers.push_back(float(trainer.evaluate(data.view(samples))));
  }
  for (float const value : laws::snapshot(trainer).values) numbers.push_back(value);
  return numbers;
}

/// Trains under a schedule that the process `make`s, in a process of its own.
template <class Trainer>
int outcome_of(std::vector<float> const& expected,
               std::function<schedules::dynamic_table()> const& make) {
  pid_t const child = fork();
  if (child == 0) {
    int found = other_error;
    try {
      schedules::dynamic_table table = make();
      given = &table;
      found = laws::same_numbers(trained<Trainer>(), expected) ? same_bits : other_bits;
      if (explain<Trainer>().empty() || Trainer::plan().bubble < 0) found = other_error;
    } catch (data_error const&) {
      found = refused;
    } catch (error const& e) {
      if (std::string_view(e.what()).find("schedule given is not valid") == 0) found = refused;
    }
    _exit(found);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

template <schedules::placement Where, int Chunks>
void try_many() {
  using trainer = Many<Where, Chunks>;
  constexpr int ranks = stages / Chunks, tries = 60;
  auto const expected = trained<Trained<>>();
  int right_again = 0, spoilt = 0, unreadable = 0;
  for (unsigned seed = 0; seed < tries; ++seed) {
    INFO("seed " << seed << ", placement " << int(Where));
    dice d(seed);
    auto const table = right_table(d, Where, ranks);
    CHECK(outcome_of<trainer>(expected, [&] { return table; }) == same_bits);

    int const found = outcome_of<trainer>(expected, [&] {
      auto wrong = table;
      for (int i = below(d, 2); i >= 0; --i) spoil(d, wrong);
      return wrong;
    });
    CHECK((found == same_bits || found == refused));
    right_again += found == same_bits;
    spoilt += found == refused;

    int const read = outcome_of<trainer>(expected, [&] {
      std::string text = schedules::torch_csv(table);
      for (int i = below(d, 3); i >= 0; --i)
        text[std::size_t(below(d, int(text.size())))] = "0123456789FBIW,\n()"[below(d, 18)];
      return schedules::read_torch_csv(text).table;
    });
    CHECK((read == same_bits || read == refused));
    unreadable += read == refused;
  }
  CHECK(spoilt > tries / 2);
  CHECK(right_again > 0);
  CHECK(unreadable > tries / 2);
}

TEST_CASE("schedules drawn by lot train like one stage, spoilt ones are refused", "[laws][long]") {
  try_many<schedules::placement::straight, 1>();
  try_many<schedules::placement::loop, 2>();
  try_many<schedules::placement::vee, 2>();
}

}  // namespace random_schedules

#endif
