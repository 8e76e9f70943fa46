// SPDX-License-Identifier: BSL-1.0
//
// An idle trainer costs nothing: none of its threads is woken between calls.
#include "catch.hpp"

#include <chrono>
#include <thread>

#include <pipe/pipe.hpp>

#include "laws/data.hpp"
#include "runtime/switches.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<3>, Linear<8>, Tanh, Linear<8>, Tanh, Linear<8>, Tanh, Linear<1>, MSE> {};
using Trainer =
    Pipeline<Net, Stages<4>, HostThreads<2>, MicroBatches<4>, MicroBatchSize<2>, PortableHost>;

}  // namespace

TEST_CASE("threads of an idle trainer are not woken", "[runtime]") {
  auto const others = switches();  // this thread, and those of a sanitizer
  Trainer trainer({.seed = 1});
  laws::sample_batch<Trainer> const data(1);
  trainer.step(data.view());
  trainer.evaluate(data.view());
  // They first spin and fall asleep. One that is woken 20 times a second is never the same again.
  bool sleep = false;
  std::size_t count = 0;
  for (int i = 0; i < 40 && !sleep; ++i) {
    auto const before = switches();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    sleep = true;
    count = 0;
    for (auto const& [thread, number] : switches())
      if (!others.contains(thread)) ++count, sleep &= before.at(thread) == number;
  }
  CHECK(count == 8);
  CHECK(sleep);
  trainer.step(data.view());
}
