// SPDX-License-Identifier: BSL-1.0
#include <cstdio>
#include <vector>

#include <pipe/plan/compiled/planned.hpp>
#include <pipe/plan/profile.hpp>
#include <pipe/report/explain_profile.hpp>

#include "../outputs.hpp"
#include "gpt.hpp"

void measure(options const& o) {
  require_writable({o.profile});
  // [measure]
  using OneStage =
      pp::Pipeline<GPT, pp::MicroBatches<8>, pp::MicroBatchSize<2>, pp::AdamW, pp::Host>;
  OneStage trainer({.seed = o.seed});
  std::vector<int> tokens(OneStage::samples * OneStage::inputs_per_sample);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = int(i % 256);  // any text takes as long
  auto const times = pp::measure_layers(trainer, {tokens, tokens}, 20, o.profile_spread);
  pp::write_profile(o.profile, "gpt_profile", times);

  using FourStages =
      pp::Planned<GPT, pp::Stages<4>, Partition, pp::MicroBatches<8>, pp::MicroBatchSize<2>>;
  std::fputs(pp::explain_profile<FourStages>(times).c_str(), stdout);
  // [/measure]
  std::printf(
      "wrote the times of %d layers to '%s', spread %.0f %%: build again with it as "
      "examples/gpt/gpt_profile.hpp, or with cmake -DPIPE_GPT_PROFILE=FILE, and the stages are cut "
      "by them\n",
      GPT::graph.size.units, o.profile.c_str(), 100 * times.spread);
}
