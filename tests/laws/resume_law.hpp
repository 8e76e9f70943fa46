// SPDX-License-Identifier: BSL-1.0
//
// The law of checkpoints: n steps are k steps, save, load in another trainer, and n - k steps, bit
// for bit.
#pragma once

#include "catch.hpp"

#include <cstddef>
#include <cstdint>

#include <pipe/checkpoint/checkpoint.hpp>

#include "laws/data.hpp"
#include "train/folder.hpp"

namespace laws {

/// A step of both.
template <class A, class B>
void step_alike(A& a, B& b, std::uint64_t seed) {
  sample_batch<A> const data(seed);
  auto const x = a.step(data.view());
  auto const y = b.step(data.template view<B>());
  CHECK(same_bits(x.loss, y.loss));
  CHECK(same_bits(x.gradient_norm, y.gradient_norm));
}
template <class Trainer>
void accumulate(Trainer& t, std::uint64_t seed) {
  t.accumulate(sample_batch<Trainer>(seed).view());
}
template <class Trainer>
typename Trainer::settings settings_of(std::uint64_t seed) {
  typename Trainer::settings s{.seed = seed, .clip_norm = 0.5};
  s.optimizer.learning_rate = 0.02;
  return s;
}

/// Whether two trainers have the same parameters and, if they keep any, averages.
template <class A, class B>
bool same_parameters(A& a, B& b) {
  auto const same = [](auto const& some, auto const& others) {
    bool are_same = some.size() == others.size();
    for (std::size_t i = 0; are_same && i < some.size(); ++i)
      are_same = same_numbers(some[i].values, others[i].values);
    return are_same;
  };
  if constexpr (A::keeps_averages)
    if (!same(a.averaged(), b.averaged())) return false;
  return same(a.parameters(), b.parameters());
}

/// A run in A is resumed in B, which was in another run. accumulated: mini-batches that wait for
/// the next step when it is saved
template <class A, class B>
void resumes(int accumulated = 0) {
  INFO(B::plan().schedule << ", " << B::plan().stage_count << " stages, " << accumulated
                          << " accumulated");
  temporary_folder const folder;
  A undisturbed(settings_of<A>(1)), a(settings_of<A>(1));
  B b(settings_of<B>(2));
  accumulate(b, 50);
  b.step(sample_batch<B>(51).view());
  accumulate(b, 52);
  for (std::uint64_t step = 1; step <= 2; ++step) step_alike(undisturbed, a, step);
  for (int i = 0; i < accumulated; ++i) {
    accumulate(undisturbed, 20 + std::uint64_t(i));
    accumulate(a, 20 + std::uint64_t(i));
  }
  a.save(folder.file("a"), 17);
  pp::resumed_run const r = b.load(folder.file("a"));
  CHECK(r.steps == 2);
  CHECK(r.accumulated == accumulated);
  CHECK(r.position.number() == 17);
  CHECK(b.steps() == 2);
  CHECK(b.accumulated() == accumulated);
  CHECK(same_parameters(a, b));
  b.save(folder.file("b"), 17);
  CHECK(same_content(folder.file("a"), folder.file("b")));
  for (std::uint64_t step = 3; step <= 4; ++step) step_alike(undisturbed, b, step);
  CHECK(same_parameters(undisturbed, b));
  undisturbed.save(folder.file("a"));
  b.save(folder.file("b"));
  CHECK(same_content(folder.file("a"), folder.file("b")));
}

}  // namespace laws
