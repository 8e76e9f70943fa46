// SPDX-License-Identifier: BSL-1.0
//
// The law of runs of several steps: results, parameters, averages and errors of steps that overlap
// are those of others, such as steps with a barrier, bit for bit, whatever has to be taken back.
#pragma once

#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "laws/data.hpp"
#include "message_of.hpp"

namespace laws {

/// Mini-batches of a trainer's model. Every third one is short by a sample and a half micro-batch,
/// so numbers of micro-batches that run on over steps have gaps.
template <class Trainer>
struct mini_batches {
  std::vector<sample_batch<Trainer>> all;
  explicit mini_batches(int count, std::uint64_t seed = 5) {
    for (int i = 0; i < count; ++i) all.emplace_back(seed + std::uint64_t(i));
  }
  /// As batches of a trainer of the same model.
  template <class Other = Trainer>
  std::vector<typename Other::batch> views() const {
    std::vector<typename Other::batch> v;
    int const less = Trainer::samples > 3 ? 3 : 1;
    for (std::size_t i = 0; i < all.size(); ++i)
      v.push_back(all[i].template view<Other>(Trainer::samples - (i % 3 == 2 ? less : 0)));
    return v;
  }
};

/// What training shows.
struct history {
  std::vector<double> numbers;
  std::string error;
  template <class Trainer>
  void train(Trainer& trainer, std::vector<typename Trainer::batch> const& all) {
    error = message_of<pp::not_finite>([&] {
      trainer.train(all, [&](pp::step_result const& r) {
        numbers.push_back(r.loss);
        numbers.push_back(r.gradient_norm);
        CHECK(r.seconds >= 0);  // also of a step that was taken back
      });
    });
  }
};

/// Trains two trainers in two calls each, and compares everything.
///
/// bad: a mini-batch with a number that is not finite; -1: none
template <class Expected, class Overlapping>
void same_runs(double clip_norm, double clip_value = 0, int bad = -1) {
  INFO(Overlapping::plan().schedule << ", " << Overlapping::plan().stage_count
                                    << " stages, clip_norm " << clip_norm << ", clip_value "
                                    << clip_value << ", bad " << bad);
  Expected a({.seed = 3, .clip_value = clip_value, .clip_norm = clip_norm});
  Overlapping b({.seed = 3, .clip_value = clip_value, .clip_norm = clip_norm});
  mini_batches<Expected> first(7), second(5, 50);
  if constexpr (!Expected::model::graph.inputs[0].is_ids)
    if (bad >= 0) first.all[std::size_t(bad)].inputs[5] = std::numeric_limits<float>::infinity();
  history x, y;
  for (auto const* data : {&first, &second}) {
    auto const ours = data->views();
    auto const theirs = data->template views<Overlapping>();
    x.train(a, ours);
    y.train(b, theirs);
    CHECK(x.error == y.error);
    CHECK(a.steps() == b.steps());
    CHECK(x.numbers == y.numbers);
    CHECK(same_numbers(snapshot(a).values, snapshot(b).values));
    std::size_t const good = bad == 1 ? 2 : 1;
    CHECK(same_bits(a.evaluate(ours[good]), b.evaluate(theirs[good])));
    if constexpr (Expected::keeps_averages) {
      a.swap_averages(), b.swap_averages();
      CHECK(same_numbers(snapshot(a).values, snapshot(b).values));
      a.swap_averages(), b.swap_averages();
    }
    // A step with a barrier between.
    CHECK(same_bits(a.step(ours[good]).loss, b.step(theirs[good]).loss));
  }
  CHECK(x.numbers.size() >= 8);
}

}  // namespace laws
