// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints of trainers in several processes with a device each.
#pragma once

#include "nccl/alike.hpp"
#include "train/folder.hpp"

#include <pipe/checkpoint/checkpoint.hpp>

#include <cstdint>
#include <string>

namespace processes {

/// A run of Many is saved with the bytes of One, which has all accumulations in this process; Other
/// goes on from that file, Many from the other one, both with the bits of One.
template <class One, class Many, class Other>
std::string is_resumed_alike(temporary_folder const& folder) {
  gpu.devices = 8;
  One one({.seed = 3});
  Many many({.seed = 3}), again({.seed = 5});
  Other other({.seed = 4});
  differences found;
  auto const steps_alike = [&](auto& trainer, std::uint64_t seed) {
    laws::sample_batch<One> const data(seed);
    auto const a = one.step(data.view()), b = trainer.step(data.template view<Many>());
    found.expect(laws::same_bits(a.loss, b.loss), "loss");
    found.expect(a.loss_scale == b.loss_scale, "scale");
  };
  for (std::uint64_t i = 0; i < 2; ++i) steps_alike(many, i);
  std::string const own = folder.file(std::to_string(pp::Nccl::process())),
                    all = folder.file("all");
  one.save(own);
  many.save(all);
  found.expect(same_content(own, all), "file");
  other.load(all);
  again.load(own);
  steps_alike(other, 2);
  found.expect(has_the_parameters(one, other), "parameters of another trainer");
  one.load(own);
  steps_alike(again, 2);
  found.expect(has_the_parameters(one, again), "parameters");
  other.save(all);
  again.save(folder.file("again"));
  found.expect(same_content(all, folder.file("again")), "second file");
  return found.first();
}

}  // namespace processes
