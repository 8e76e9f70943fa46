// SPDX-License-Identifier: BSL-1.0
//
// Where ranks work: a rank that is the only one in the thread of the caller, whichever it is,
// unless settings ask for a watch; several ranks in threads of their own. The bits are the same.
#include "catch.hpp"

#include <array>
#include <filesystem>
#include <iterator>
#include <set>
#include <stdexcept>
#include <thread>

#include <pipe/pipe.hpp>

#include "message_of.hpp"

using namespace pp;

namespace {

std::set<std::thread::id> threads_of_forward;
bool throws_in_forward = false;

/// y = 2 x, which notes the thread.
struct Seen {
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const& f) {
    threads_of_forward.insert(std::this_thread::get_id());
    if (throws_in_forward) throw std::runtime_error("no forward today");
    for (long i = 0; i < f.samples * f.in.elements(); ++i) f.y[i] = T(2) * f.x[i];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& g) {
    for (long i = 0; i < g.samples * g.in.elements(); ++i) g.dx[i] = T(2) * g.dy[i];
  }
};

struct Net : Model<Input<6>, Linear<5>, Custom<Seen>, Tanh, Linear<3>, MSE> {};
template <class... Options>
using Trained = Pipeline<Net, PortableHost, MicroBatches<2>, MicroBatchSize<3>, SGD, Options...>;

template <class Trainer>
std::array<double, 3> three_steps(Trainer& t) {
  std::vector<float> x(36), y(18);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7) / 7;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = float(i % 5) / 5;
  threads_of_forward.clear();
  std::array<double, 3> losses{};
  for (double& loss : losses) loss = t.step({x, y}).loss;
  return losses;
}
std::set<std::thread::id> const& mine() {
  static std::set<std::thread::id> only;
  only = {std::this_thread::get_id()};
  return only;
}
long threads_of_process() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

}  // namespace

TEST_CASE("a rank that is the only one works in the thread of the caller", "[runtime]") {
  long const before = threads_of_process();
  Trained<> t({.seed = 1});
  CHECK(threads_of_process() == before);
  auto const losses = three_steps(t);
  CHECK(threads_of_forward == mine());
  CHECK(threads_of_process() == before);

  Trained<> elsewhere({.seed = 1});
  std::thread([&] {
    CHECK(three_steps(elsewhere) == losses);
    CHECK(threads_of_forward == mine());
  }).join();
  std::vector<float> x(18), y(9);
  elsewhere.forward(x, y);
  CHECK(threads_of_forward.size() == 2);

  Trained<HostThreads<3>> several({.seed = 1});
  CHECK(three_steps(several) == losses);
  CHECK(threads_of_forward == mine());
}

TEST_CASE("ranks have threads of their own where they are several or watched", "[runtime]") {
  Trained<> alone({.seed = 1});
  auto const losses = three_steps(alone);
  auto const has_own = [&](auto& t) {
    CHECK(three_steps(t) == losses);
    CHECK(threads_of_forward.size() == 1);
    CHECK(threads_of_forward != mine());
  };
  Trained<Stages<2>> two({.seed = 1});
  has_own(two);
  Trained<>::settings with;
  with.seed = 1;
  with.runtime.waiting.deadline = std::chrono::minutes(1);
  Trained<> watched(with);
  has_own(watched);
  with.runtime = {};
  with.runtime.on_timeout = abort_with_report;
  Trained<> ended(with);
  has_own(ended);
  with.runtime = {};
  with.runtime.slow.at_least = std::chrono::minutes(1);
  Trained<> slow(with);
  has_own(slow);
}

TEST_CASE("what fails in the thread of the caller is thrown there, and the trainer goes on",
          "[runtime]") {
  Trained<> t({.seed = 1}), same({.seed = 1});
  three_steps(same);
  std::vector<float> x(36, 0.5f), y(18, 0.25f);
  throws_in_forward = true;
  CHECK(message_of<std::runtime_error>([&] { t.evaluate({x, y}); }) == "no forward today");
  throws_in_forward = false;
  three_steps(t);
  CHECK(t.evaluate({x, y}) == same.evaluate({x, y}));
}
