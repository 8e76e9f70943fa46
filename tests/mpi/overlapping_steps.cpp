// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap over processes have the bits of the same steps in one process.
#include "mpi/alike.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <pipe/schedule/families.hpp>
#include <pipe/train/checkpoint.hpp>

#include "mpi/folder.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELU, Linear<8>, GELU, Linear<8>, GELU, Linear<4>, MSE> {};
template <class Family, int A, int Ranks, class... More>
using Of = Pipeline<Net, PortableHost, AdamW, Stages<Ranks>, MicroBatches<A>, MicroBatchSize<2>,
                    Averaging<9, 10>, Family, More...>;

/// Mini-batches of numbers, of which the last has one sample.
template <class Trainer>
struct mini_batches {
  std::vector<laws::sample_batch<Trainer>> data;
  std::vector<typename Trainer::batch> views;
  explicit mini_batches(int count) {
    for (int i = 0; i < count; ++i) data.emplace_back(std::uint64_t(100 + i));
    for (int i = 0; i < count; ++i)
      views.push_back(data[std::size_t(i)].view(i + 1 == count ? 1 : Trainer::samples));
  }
};
struct numbers {
  std::vector<double> losses, norms;
  void operator()(step_result const& r) {
    losses.push_back(r.loss), norms.push_back(r.gradient_norm);
  }
  bool operator==(numbers const&) const = default;
};

/// Two calls of train(), of which the first ends early.
template <class Family, int A, int Ranks>
void trains_alike() {
  using One = Of<Family, A, Ranks>;
  using Many = Of<Family, A, Ranks, Between>;
  INFO(Family::name << ", process " << Between::process() << " of " << Between::processes());
  mini_batches<One> const data(11);
  mini_batches<Many> const same(11);
  One one({.seed = 3, .clip_value = 0.1});
  Many many({.seed = 3, .clip_value = 0.1});
  for (int call = 0; call < 2; ++call) {
    numbers a, b;
    auto const early = [&](numbers& of) {
      return [&, call](step_result const& r) { return of(r), call > 0 || of.losses.size() < 3; };
    };
    CHECK(one.train(data.views, early(a)) == many.train(same.views, early(b)));
    CHECK(a == b);
    CHECK(processes::same_parameters(one, many));
    CHECK(laws::same_bits(one.evaluate(data.views[0]), many.evaluate(same.views[0])));
  }
  CHECK(one.steps() == many.steps());
  one.swap_averages(), many.swap_averages();
  CHECK(processes::same_values(one, many));
}

}  // namespace

TEST_CASE("steps without a flush have the bits of one process") {
  if (Between::processes() > 4) return;
  trains_alike<PipeDream<>, 1, 4>();
  trains_alike<PipeDream<true>, 2, 4>();
  trains_alike<PipeDream2BW<>, 3, 4>();
  trains_alike<PACI<>, 2, 4>();
}
