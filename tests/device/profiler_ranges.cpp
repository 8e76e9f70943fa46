// SPDX-License-Identifier: BSL-1.0
//
// What a profiler sees: a range for each action, in that of its run; names of streams.
#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "laws/data.hpp"

using namespace pp;

namespace {

using fake_nvtx::the_tool;

/// A layer whose launches note the range that they are in: y = x.
struct Noted {
  static inline std::vector<std::string> in;
  static inline bool throws = false;
  static constexpr sample_shape result(sample_shape from) { return from; }
  static constexpr int parameters = 0;
  static void note() {
    if (throws) throw std::runtime_error("broken");
    in.push_back(the_tool.open.size() == 2 ? the_tool.open[0] + ": " + the_tool.open[1] : "none");
  }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) a.y[i] = a.x[i];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) a.dx[i] = a.dy[i];
  }
  template <class T>
  static void forward(custom::forward<T> const& a, cudaStream_t on) {
    note();
    on->put([a] { forward(a); });
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a, cudaStream_t on) {
    note();
    on->put([a] { input_gradient(a); });
  }
};
struct Net : Model<Input<4>, Linear<4>, Linear<4>, Custom<Noted>, Linear<2>, MSE> {};
template <class... More>
using Ranged = Pipeline<Net, on_host::Device, SGD, Stages<2>, Cut<2>, MicroBatches<2>,
                        MicroBatchSize<2>, More...>;

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("every action is a range in that of its run, with a registered name", "[cuda]") {
  using Trainer = Ranged<NoGraphs>;
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> const data(1);
  the_tool.seen.clear(), Noted::in.clear();
  long const registrations = the_tool.registrations;
  trainer.step(data.view());
  REQUIRE(the_tool.seen.size() == 9);
  CHECK(the_tool.seen[0] == "train");
  std::multiset<std::string> const seen(the_tool.seen.begin() + 1, the_tool.seen.end());
  std::multiset<std::string> planned;
  auto const& table = Trainer::compiled::table();
  for (int r = 0; r < table.ranks(); ++r)
    for (int i = 0; i < table.size(r); ++i) {
      schedules::action const a = table.at(r, i);
      planned.insert(schedules::short_name(a.kind) + (" chunk " + std::to_string(a.chunk)) +
                     " micro-batch " + std::to_string(a.micro_batch));
    }
  CHECK(seen == planned);
  CHECK(planned.count("BW chunk 1 micro-batch 1") == 1);
  // What the layer has put on a stream, the host did inside of its action's range.
  std::multiset<std::string> const noted(Noted::in.begin(), Noted::in.end());
  CHECK(noted == std::multiset<std::string>{
                     "train: BW chunk 1 micro-batch 0", "train: BW chunk 1 micro-batch 1",
                     "train: F chunk 1 micro-batch 0", "train: F chunk 1 micro-batch 1"});
  the_tool.seen.clear();
  trainer.evaluate(data.view());
  CHECK(the_tool.seen == names{"evaluate", "F chunk 0 micro-batch 0", "F chunk 0 micro-batch 1",
                               "F chunk 1 micro-batch 0", "F chunk 1 micro-batch 1"});
  CHECK(the_tool.registrations == registrations);
  CHECK(the_tool.open.empty());
}
TEST_CASE("split backward has ranges of its own", "[cuda]") {
  using Trainer = Ranged<NoGraphs, ZeroBubbleH1>;
  Trainer trainer({.seed = 3});
  the_tool.seen.clear();
  trainer.step(laws::sample_batch<Trainer>(1).view());
  for (char const* name : {"B chunk 1 micro-batch 0", "W chunk 1 micro-batch 0"})
    CHECK(std::count(the_tool.seen.begin(), the_tool.seen.end(), name) == 1);
}
TEST_CASE("a step that is replayed is one range", "[cuda]") {
  using Trainer = Ranged<>;
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> const data(1);
  for (int step = 0; step < 2; ++step) trainer.step(data.view());  // by streams, then captured
  the_tool.seen.clear();
  trainer.step(data.view());
  CHECK(the_tool.seen == names{"train"});
}
TEST_CASE("a range ends when its action throws", "[cuda]") {
  using Trainer = Ranged<NoGraphs>;
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> const data(1);
  Noted::throws = true;
  CHECK_THROWS_AS(trainer.step(data.view()), std::runtime_error);
  Noted::throws = false;
  CHECK(the_tool.open.empty());
  CHECK_NOTHROW(trainer.step(data.view()));
}
TEST_CASE("streams are called after their ranks", "[cuda]") {
  the_tool.streams.clear();
  Ranged<> const two;
  std::set<std::string> called;
  for (auto const& [stream, name] : the_tool.streams) called.insert(name);
  CHECK(called == std::set<std::string>{"rank 0 forward", "rank 0 input gradients",
                                        "rank 0 weight gradients", "rank 1 forward",
                                        "rank 1 input gradients", "rank 1 weight gradients"});
  the_tool.streams.clear();
  Pipeline<Net, on_host::Device, SGD> const one;
  REQUIRE(the_tool.streams.size() == 1);
  CHECK(the_tool.streams.begin()->second == "rank 0");
}
