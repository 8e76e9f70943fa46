// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap over processes have the bits of the same steps in one process.
#include "mpi/alike.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/report/trainer_drawing.hpp>
#include <pipe/schedule/catalog/families.hpp>

#include "message_of.hpp"
#include "mpi/folder.hpp"

using namespace pp;

namespace {

/// A step moves the running statistics, too.
struct Net : Model<Input<2, 3>, Linear<8, NoBias>, BatchNorm, GELUTanh, Linear<8>, GELUTanh,
                   Linear<8>, GELUTanh, Linear<4>, MSE> {};
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

/// All processes have what all ranks executed in the last steps, which is what they do in one.
template <class One, class Many>
void are_recorded_alike(One const& one, Many const& many) {
  executed_run const alone = gather_executed(one), all = gather_executed(many);
  CHECK(alone.first_step == all.first_step);
  CHECK(alone.steps == all.steps);
  REQUIRE(alone.rows.size() == all.rows.size());
  for (std::size_t row = 0; row < all.rows.size(); ++row) {
    REQUIRE(alone.rows[row].size() == all.rows[row].size());
    long end = 0;
    for (std::size_t i = 0; i < all.rows[row].size(); ++i) {
      executed_action const &a = alone.rows[row][i], &b = all.rows[row][i];
      CHECK(a.what == b.what);
      CHECK(a.step == b.step);
      CHECK(b.start >= end);
      end = b.end;
    }
  }
  drawings::drawing const d = drawings::of_run<Many>(all);
  CHECK(d.steps == all.steps);
  for (detail::drawn_transfer const& t : d.transfers)
    CHECK(d.at(t.to_rank, t.to).start >= d.at(t.from_rank, t.from).start - d.clock_error);
}

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
    are_recorded_alike(one, many);
    CHECK(processes::same_parameters(one, many));
    CHECK(laws::same_bits(one.evaluate(data.views[0]), many.evaluate(same.views[0])));
  }
  CHECK(one.steps() == many.steps());
  one.swap_averages(), many.swap_averages();
  CHECK(processes::same_values(one, many));
}

/// n steps are k steps, save, load in another trainer and n - k steps, with the bytes of one
/// process.
template <class Family, int A>
void resumes_to_the_bit() {
  using One = Of<Family, A, 4>;
  using Many = Of<Family, A, 4, Between>;
  INFO(Family::name << ", process " << Between::process() << " of " << Between::processes());
  mini_batches<One> const data(9);
  mini_batches<Many> const same(9);
  One one({.seed = 3});
  Many first({.seed = 3}), second({.seed = 4});
  auto const own = processes::in_folder("flow-alone") + "-" + std::to_string(Between::process());
  auto const begin = data.views.begin();
  auto const theirs = same.views.begin();
  one.train(std::vector(begin, begin + 4));
  first.train(std::vector(theirs, theirs + 4));
  second.train(std::vector(theirs, theirs + 2));
  one.save(own);
  for (auto const how : {checkpoint_files::one, checkpoint_files::by_process}) {
    std::string const path = processes::in_folder("flow");
    first.save(path, "", how);
    if (how == checkpoint_files::one) CHECK(processes::bytes_of(own) == processes::bytes_of(path));
    second.load(path);
    second.train(std::vector(theirs + 4, same.views.end()));
    if (how == checkpoint_files::one) one.train(std::vector(begin + 4, data.views.end()));
    CHECK(processes::same_parameters(one, second));
  }
}

}  // namespace

TEST_CASE("steps without a flush have the bits of one process") {
  if (Between::processes() > 4) return;
  trains_alike<PipeDream<>, 1, 4>();
  trains_alike<PipeDream<true>, 2, 4>();
  trains_alike<PipeDream2BW<>, 3, 4>();
  trains_alike<PACI<>, 2, 4>();
}
TEST_CASE("versions of the weights are saved and resumed over processes") {
  if (Between::processes() > 4) return;
  resumes_to_the_bit<PipeDream<>, 2>();
  resumes_to_the_bit<PipeDream2BW<>, 3>();
}
TEST_CASE("a free step that is not finite breaks its trainer in all processes, and no other one") {
  if (Between::processes() > 4) return;
  using Many = Of<PipeDream<>, 1, 4, Between>;
  mini_batches<Many> data(12);
  Many broken({.seed = 3}), other({.seed = 3});
  auto views = data.views;
  std::vector<float> wrong(views[3].inputs.begin(), views[3].inputs.end());
  wrong[1] = std::numeric_limits<float>::infinity();
  views[3].inputs = wrong;
  numbers seen;
  CHECK(message_of<not_finite>([&] {
          broken.train(views, [&](auto const& r) { seen(r); });
        }).find("step 4 rejected") == 0);
  CHECK(seen.losses.size() == 3);
  CHECK(broken.steps() == 3);
  CHECK_THROWS_WITH(broken.train(views), Catch::Contains("broken"));
  CHECK(other.train(data.views) == 12);
}
