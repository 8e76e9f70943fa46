// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap where several ranks run a stage: the bits of steps with a barrier, with short
// mini-batches among others, and each rank in its own memory. ThreadSanitizer runs this file too
// (tests.laws.tsan).
#include "laws/eager.hpp"
#include "laws/models_of_stage_ranks.hpp"
#include "laws/overlap_law.hpp"

#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

namespace {

/// The bits of one stage.
template <class M, class S, class... Options>
void same_as_one_stage(double clip_norm, int bad = -1) {
  laws::same_runs<Pipeline<M, laws::Eager<PortableHost>, AdamW, MicroBatches<6>, MicroBatchSize<2>>,
                  Pipeline<M, laws::Eager<PortableHost>, AdamW, MicroBatches<6>, MicroBatchSize<2>,
                           Steady<S>, Options...>>(clip_norm, 0, bad);
}

/// Passes its input on, and notes which threads have written to an address.
struct Noted {
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    pass(a.x, a.y, a.samples * a.in.elements());
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    pass(a.dy, a.dx, a.samples * a.in.elements());
  }
  template <class T>
  static void pass(T const* from, T* to, long count) {
    for (long i = 0; i < count; ++i) to[i] = from[i];
    std::lock_guard const held(one_at_a_time);
    writers[to].insert(std::this_thread::get_id());
  }
  static inline std::mutex one_at_a_time;
  static inline std::map<void const*, std::set<std::thread::id>> writers;
};
struct NotedNet : Model<Input<4>, Linear<4>, Custom<Noted>, Linear<4>, MSE> {};

}  // namespace

TEST_CASE("replicas of stages overlap steps with the bits of one stage", "[laws]") {
  for (double const clip : {0., 0.1})
    same_as_one_stage<laws::Shared, OneFOneB, StageReplicas<1, 3, 2>>(clip);
  same_as_one_stage<laws::Buffered, EagerOneFOneB, StageReplicas<2, 1>, HostThreads<2>>(0.1);
}
TEST_CASE("two directions overlap steps with the bits of one stage", "[laws]") {
  for (double const clip : {0., 0.1})
    same_as_one_stage<laws::Shared, Chimera, Stages<4>, HostThreads<2>>(clip);
  for (int const bad : {0, 2}) same_as_one_stage<laws::Buffered, DualPipe, Stages<2>>(0, bad);
}
TEST_CASE("after short steps, too, a rank works in its own memory", "[laws]") {
  using Trainer =
      Pipeline<NotedNet, SGD, Steady<>, StageReplicas<3, 2>, MicroBatches<6>, MicroBatchSize<2>>;
  Noted::writers.clear();
  Trainer trainer;
  trainer.train(laws::mini_batches<Trainer>(9).views());
  std::set<std::thread::id> all;
  for (auto const& [at, threads] : Noted::writers) {
    CHECK(threads.size() == 1);
    all.insert(threads.begin(), threads.end());
  }
  CHECK(all.size() >= 2);  // the ranks of its stage
}
