// SPDX-License-Identifier: BSL-1.0
//
// The names of GPT-2 in the files of hubs, whose matrices are those of a Conv1D: inputs by outputs.
#pragma once

#include "weights.hpp"

namespace models {

/// For the type Gpt2. The masks of its attention are in older files; the head is the table of the
/// embedding.
inline hub_map const gpt2_names{.prefix = "transformer.",
                                .blocks = "h.",
                                .parts = {{"0.0.", {"ln_1."}},
                                          {"0.1.in_proj_", {"attn.c_attn."}},
                                          {"0.1.out_proj.", {"attn.c_proj."}},
                                          {"1.0.", {"ln_2."}},
                                          {"1.1.", {"mlp.c_fc."}},
                                          {"1.3.", {"mlp.c_proj."}}},
                                .inputs_first = true,
                                .others = {".attn.bias", ".attn.masked_bias", "lm_head.weight"}};

}  // namespace models
