// SPDX-License-Identifier: BSL-1.0
//
// A step of training whose kernels' threads are threads, for ThreadSanitizer.
#pragma once

#define FAKE_GPU_HAS_THREADS
#include "device/device.hpp"
#include "laws/data.hpp"

namespace races {

/// Has the bits of one thread after the other, twice: with copies that happen as soon, and as late,
/// as they may.
template <class Trainer>
void has_no_races() {
  laws::sample_batch<Trainer> const data(1);
  typename Trainer::settings const s{.seed = 3, .clip_value = 0.5, .clip_norm = 1};
  fake_gpu::uses_threads = false;
  Trainer expected(s);
  auto const a = expected.step(data.view());
  for (on_host::copies_happen when :
       {on_host::copies_happen::at_once, on_host::copies_happen::when_awaited}) {
    on_host::when_threads_copy = when;
    fake_gpu::uses_threads = true;
    Trainer found(s);
    auto const b = found.step(data.view());
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(expected).values, laws::snapshot(found).values));
  }
}

}  // namespace races
