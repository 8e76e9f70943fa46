// SPDX-License-Identifier: BSL-1.0
//
// The bit law over a transport that copies every value that crosses a rank: skips, shared weights,
// further inputs, and stages that hand on no gradient.
#include "catch.hpp"

#include "transport/messages.hpp"
#include "transport/models.hpp"

#include "laws/bit_law.hpp"
#include "laws/schedules.hpp"

#include <stdexcept>
#include <string>
#include <thread>

using namespace pp;
using namespace pp::detail;

namespace {

using test_transports::Shared, test_transports::Small;
using Four = Small<Shared, Messages, Stages<4>, laws::LastWeights, RecomputeAll>;

/// Its first stages hand on no gradient, its last one hands on the loss's own.
struct Ends : Model<Input<2, 3>, GELUTanh, Flatten, Linear<5>, Tanh, Linear<4>, Positions, MSE> {};

}  // namespace

TEST_CASE("skips and shared weights travel as messages", "[laws]") {
  laws::same_as_one_stage<Small<Shared>, Four>(6, 3, 3);
}
TEST_CASE("edges without gradients are edges", "[laws]") {
  laws::same_as_one_stage<Small<Ends>, Small<Ends, Messages, Stages<4>, ByCount>>(5, 3, 1);
}

TEST_CASE("averages and accumulated gradients are those of one stage", "[laws]") {
  // The first stage is quick: in an evaluation it is ahead of the second by as many micro-batches
  // as there are slots.
  using one =
      Pipeline<Shared, PortableHost, AdamW, MicroBatches<9>, MicroBatchSize<2>, Averaging<9, 10>>;
  using two = Pipeline<Shared, PortableHost, AdamW, MicroBatches<9>, MicroBatchSize<2>,
                       Averaging<9, 10>, Messages, Stages<2>, Cut<1>>;
  static_assert(two::compiled::memory().chunks[1].rings.received.slots < 4);
  one a({.seed = 3, .clip_value = 0.01, .clip_norm = 0.02});
  two b({.seed = 3, .clip_value = 0.01, .clip_norm = 0.02});
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<one> const first(step), second(10 + step);
    CHECK(laws::same_bits(a.accumulate(first.view()).loss,
                          b.accumulate(first.template view<two>()).loss));
    CHECK(laws::same_bits(a.step(second.view(11)).gradient_norm,
                          b.step(second.template view<two>(11)).gradient_norm));
    a.swap_averages(), b.swap_averages();
    CHECK(laws::same_bits(a.evaluate(first.view()), b.evaluate(first.template view<two>())));
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
    a.swap_averages(), b.swap_averages();
  }
}
TEST_CASE("a failing rank stops all that send and receive, and changes nothing", "[laws]") {
  Four healthy({.seed = 3}), troubled({.seed = 3});
  for (int chunk = 0; chunk < 4; ++chunk)
    for (detail::program p : {detail::program::forward, detail::program::backward_input,
                              detail::program::backward_weight}) {
      laws::sample_batch<Four> const data(chunk);
      bool thrown = false;
      try {
        troubled.watch(data.view(), [&](launch_seen const& seen) {
          if (seen.chunk == chunk && seen.which == p && seen.micro_batch == 2)
            throw std::runtime_error("broken");
        });
      } catch (std::runtime_error const& e) {
        thrown = e.what() == std::string("broken");
      }
      CHECK(thrown);
      CHECK(laws::same_bits(healthy.step(data.view()).loss, troubled.step(data.view()).loss));
      CHECK(laws::same_numbers(laws::snapshot(healthy).values, laws::snapshot(troubled).values));
    }
}
TEST_CASE("a run without progress ends and says who waits for whom", "[laws]") {
  using namespace std::chrono_literals;
  Four stalled({.seed = 3, .runtime = {.waiting = {.deadline = 100ms}}});
  laws::sample_batch<Four> const data(1);
  std::string text;
  try {
    stalled.watch(data.view(), [](launch_seen const& seen) {
      if (seen.chunk == 1 && seen.micro_batch == 0 && seen.launch == 0)
        std::this_thread::sleep_for(400ms);
    });
  } catch (rank_error const& e) {
    text = e.what();
  }
  CHECK_THAT(text, Catch::StartsWith("timed out after 100 ms waiting for rank 1 (F of chunk 1"));
  CHECK_THAT(text, Catch::Contains(
                       "\nrank 0: F of chunk 0, micro-batch 1, being sent to rank 1, for 0 s"));
  CHECK_THAT(text,
             Catch::Contains(
                 "\nrank 2: F of chunk 1, micro-batch 0, being received from rank 1, for 0 s"));
  CHECK_NOTHROW(stalled.step(data.view()));
}
TEST_CASE("a transport that copies plans the slots of what is received", "[laws]") {
  using shared = Small<Shared, Stages<4>, laws::LastWeights, RecomputeAll>;
  auto const &there = shared::compiled::memory(), &here = Four::compiled::memory();
  for (int c = 0; c < 4; ++c) {
    chunk_description const& chunk = here.chunks[c];
    CHECK(there.chunks[c].rings.received.bytes() +
              there.chunks[c].rings.received_gradient.bytes() ==
          0);
    if (c > 0) CHECK(chunk.rings.received.stride == here.chunks[c - 1].rings.boundary.stride);
    if (c > 0) CHECK(chunk.rings.received.slots <= here.chunks[c - 1].rings.boundary.slots);
    if (c < 3)
      CHECK(chunk.rings.received_gradient.stride == here.chunks[c + 1].rings.gradient.stride);
    CHECK(chunk.bytes() == there.chunks[c].bytes() +
                               detail::align_up(chunk.rings.received.bytes()) +
                               detail::align_up(chunk.rings.received_gradient.bytes()));
  }
  Four const trainer;
  for (int r = 0; r < 4; ++r) CHECK(trainer.allocated_bytes(r) == Four::plan().rank_bytes[r]);
}
