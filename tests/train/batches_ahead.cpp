// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches made ahead by a thread: the same as without it, in place and in bits, and an end of
// the thread with that of the loop.
#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/train/batches.hpp>
#include <pipe/train/batches_ahead.hpp>

#include "message_of.hpp"

using namespace pp;

namespace {

/// Numbers, ids by name, and a class: every kind of list a batch has.
struct Net : Model<Named<"numbers", Input<1, 2>>, Linear<3>, Stash<"of numbers">,
                   Named<"ids", Tokens<50, 1>>, Embedding<3>, Pop<"of numbers">, Tanh, Linear<3>,
                   CrossEntropy> {};
using Trainer = Pipeline<Net, MicroBatches<2>, MicroBatchSize<2>, PortableHost>;

struct data {
  std::vector<float> numbers;
  std::vector<int> ids, classes;
  explicit data(int n) {
    for (int i = 0; i < n; ++i) {
      numbers.insert(numbers.end(), {float(i), -float(i)});
      ids.push_back(i);
      classes.push_back(i % 3);
    }
  }
  Trainer::batch view() const {
    Trainer::batch b{numbers, classes};
    return b.set<"ids">(ids);
  }
};

/// A mini-batch, copied, and the position after it.
struct reached {
  std::vector<float> numbers;
  std::vector<int> ids, classes;
  long position;
  bool operator==(reached const&) const = default;
};
template <class Batches>
std::vector<reached> all_of(Batches& of) {
  std::vector<reached> all;
  for (Trainer::batch const& b : of)
    all.push_back({{b.inputs.begin(), b.inputs.end()},
                   {b.named_ids[1].begin(), b.named_ids[1].end()},
                   {b.labels.begin(), b.labels.end()},
                   of.sample_position()});
  return all;
}

/// Writes the place of a mini-batch into it.
void say_place(owned_batch<Trainer>& b, long place) {
  for (float& x : b.inputs) x += 100;
  for (int& id : b.get<"ids">()) id = int(place % 50);
}

/// Waits until a thread has counted to `n`.
void await(std::atomic<long> const& count, long n) {
  while (count < n) detail::sleep_for(100'000);
}

}  // namespace

TEST_CASE("a thread makes the mini-batches of a range, in order, for every depth") {
  data const d(11);
  for (bool const drop_last : {false, true})
    for (long const first : {0, 2, 3})
      for (int depth = 1; depth < 5; ++depth) {
        auto const epoch = [&] {
          return batches<Trainer>(d.view(), {.shuffle = true,
                                             .seed = 3,
                                             .epoch = 2,
                                             .first = first - (drop_last && first > 2),
                                             .drop_last = drop_last});
        };
        auto expected_of = epoch(), copied = epoch(), changed = epoch();
        auto expected = all_of(expected_of);
        batches_ahead<Trainer> copies(copied, {.depth = depth});
        CHECK(all_of(copies) == expected);
        CHECK(copies.sample_position() == expected_of.sample_position());
        CHECK(all_of(copies).empty());

        long place = 2 * 11 + 4 * (first - (drop_last && first > 2));
        for (reached& r : expected) {
          for (float& x : r.numbers) x += 100;
          for (int& id : r.ids) id = int(place % 50);
          place = r.position;
        }
        batches_ahead<Trainer> changes(changed, say_place, {.depth = depth});
        CHECK(all_of(changes) == expected);
      }
}

TEST_CASE("a position is that of what was used, not of what was made") {
  std::atomic<long> made = 0;
  for (int depth = 1; depth < 4; ++depth) {
    made = 0;
    batches_ahead<Trainer> ahead(
        [&](owned_batch<Trainer>& b, long place) {
          b.inputs[0] = float(place);
          ++made;
        },
        {.depth = depth, .samples = 3, .sample_position = 30});
    await(made, depth);
    CHECK(ahead.sample_position() == 30);
    long step = 0;
    for (auto const& batch : ahead) {
      ++step;
      await(made, step + depth);  // as many wait, while this one is in use
      CHECK(made == step + depth);
      CHECK(batch.inputs.size() == 2 * 3);
      CHECK(batch.inputs[0] == float(30 + 3 * (step - 1)));
      CHECK(ahead.sample_position() == 30 + 3 * step);
      if (step == 7) break;
    }
    for (auto const& batch : ahead) {  // goes on
      CHECK(batch.inputs[0] == float(30 + 3 * 7));
      CHECK(ahead.sample_position() == 30 + 3 * 8);
      break;
    }
  }
}

TEST_CASE("a function ends the mini-batches, and may make smaller ones or none") {
  for (long const end : {0, 1, 4, 10}) {
    batches_ahead<Trainer> ahead([&](owned_batch<Trainer>& b, long place) {
      if (place == end) return false;
      b.resize(std::size_t(std::min(end - place, 4L)));
      return true;
    });
    std::vector<std::size_t> samples;
    for (auto const& batch : ahead) samples.push_back(batch.labels.size());
    CHECK(samples == (end == 0   ? std::vector<std::size_t>{}
                      : end == 1 ? std::vector<std::size_t>{1}
                      : end == 4 ? std::vector<std::size_t>{4}
                                 : std::vector<std::size_t>{4, 4, 2}));
    CHECK(ahead.sample_position() == end);
  }
}

namespace {

struct broken : std::runtime_error {
  explicit broken(long at) : std::runtime_error("broken"), place(at) {}
  long place;
};

}  // namespace

TEST_CASE("an exception comes in the place of its mini-batch, and is the last that comes") {
  for (int depth = 1; depth < 4; ++depth)
    for (long const at : {0, 1, 5}) {
      batches_ahead<Trainer> ahead(
          [&](owned_batch<Trainer>&, long place) {
            if (place == 4 * at) throw broken(place);
          },
          {.depth = depth});
      long steps = 0;
      try {
        for ([[maybe_unused]] auto const& batch : ahead) ++steps;
        FAIL("no exception came");
      } catch (broken const& e) {
        CHECK(e.place == 4 * at);
      }
      CHECK(steps == at);
      CHECK(ahead.sample_position() == 4 * at);
      CHECK(!(ahead.begin() != ahead.end()));
    }
  CHECK(message_of([] {
          batches_ahead<Trainer> ahead(
              [](owned_batch<Trainer>& b, long) { b.get<"ids">().clear(); });
          ahead.begin();
        }) == "input \"ids\": expected 4 numbers for 4 samples, got 0");
}

TEST_CASE("the thread ends with the loop, however that is left") {
  std::atomic<long> made = 0;
  auto const alive = std::make_shared<int>();
  auto const endless = [&made, alive](owned_batch<Trainer>&, long) { ++made; };
  {
    batches_ahead<Trainer> const unused(endless);
  }
  CHECK(alive.use_count() == 2);
  for ([[maybe_unused]] auto const& batch : batches_ahead<Trainer>(endless)) break;
  CHECK(alive.use_count() == 2);
  CHECK_THROWS_AS(
      [&] {
        for ([[maybe_unused]] auto const& batch : batches_ahead<Trainer>(endless)) throw broken(0);
      }(),
      broken);
  CHECK(alive.use_count() == 2);
  // An exception that no loop has reached ends with the rest.
  std::atomic<bool> throws = false;
  {
    batches_ahead<Trainer> const unused([&](owned_batch<Trainer>&, long) {
      throws = true;
      throw broken(0);
    });
    while (!throws) detail::sleep_for(100'000);
  }
}

TEST_CASE("settings of mini-batches made ahead are in their range") {
  auto const nothing = [](owned_batch<Trainer>&, long) { return false; };
  CHECK(message_of([&] { batches_ahead<Trainer>(nothing, {.depth = 0}); }) ==
        "batches_ahead: depth: expected 1 or more, got 0");
  CHECK(message_of([&] { batches_ahead<Trainer>(nothing, {.samples = -1}); }) ==
        "batches_ahead: samples: expected 0 or more, got -1");
  CHECK(message_of([&] { batches_ahead<Trainer>(nothing, {.sample_position = -1}); }) ==
        "batches_ahead: sample_position: expected 0 or more, got -1");
  data const d(4);
  batches<Trainer> epoch(d.view());
  CHECK(message_of([&] { batches_ahead<Trainer>(epoch, {.sample_position = 4}); }) ==
        "batches_ahead: samples and sample_position are those of the range, and can only be set "
        "for a function");
}
