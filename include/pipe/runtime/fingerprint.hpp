// SPDX-License-Identifier: BSL-1.0
//
// A number for a compiled pipeline, by which processes find out that they run different pipelines.
#pragma once

#include <cstdint>

#include <pipe/base/config.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// A hash of the library's version, and of a pipeline's model, cuts, schedule and layout of memory:
/// almost surely different for pipelines that do not fit together. Settings of a trainer are not in
/// it.
[[gnu::cold]] inline std::uint64_t fingerprint(pipeline_description const& d) {
  fnv_hash hash;
  auto const mix = [&](long number) {
    for (int i = 0; i < 8; ++i, number >>= 8) hash.add(static_cast<unsigned char>(number));
  };
  for (long n : {long(PIPE_VERSION), long(d.ranks), long(d.chunks), long(d.micro_batches),
                 long(d.samples), long(d.accumulations), long(d.accumulation_room), long(d.zero),
                 long(d.parameter_count), long(d.value_type), d.rows})
    mix(n);
  for (int i = 0; i < d.losses; ++i) mix(d.output[i].bytes);
  for (int r = 0; r < d.ranks; ++r) {
    mix(d.rank[r].bytes), mix(d.rank[r].training.count);
    for (view<action> const& actions : {d.rank[r].training, d.rank[r].flow})
      for (action const& a : actions)
        mix(long(a.kind)), mix(a.chunk), mix(a.micro_batch), mix(a.version);
  }
  for (int c = 0; c < d.chunks; ++c) {
    chunk_description const& chunk = d.chunk[c];
    mix(chunk.rank), mix(chunk.sizes.parameters), mix(chunk.sizes.weights), mix(chunk.sizes.values);
    for (int n = chunk.first_holder; n < chunk.first_holder + chunk.holders; ++n)
      mix(d.holder[n].rank), mix(d.holder[n].weights), mix(d.holder[n].values);
    for (parameter_place const& p : chunk.parameters) mix(p.offset), mix(p.rows);
  }
  return hash.value;
}

}  // namespace pp::detail
