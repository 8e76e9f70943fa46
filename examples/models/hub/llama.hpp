// SPDX-License-Identifier: BSL-1.0
//
// The names of LLaMA 2 and 3, and of models of this architecture, in the files of hubs. Rotary
// positions rotate the two halves of a head there as here, so queries and keys are as they are.
#pragma once

#include "weights.hpp"

namespace models {

// [map]
/// For the type Llama.
inline hub_map const llama_names{
    .prefix = "model.",
    .blocks = "layers.",
    .parts = {{"0.0.", {"input_layernorm."}},
              {"0.1.in_proj_", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
              {"0.1.out_proj.", {"self_attn.o_proj."}},
              {"1.0.", {"post_attention_layernorm."}},
              {"1.1.", {"mlp.gate_proj.", "mlp.up_proj."}},
              {"1.3.", {"mlp.down_proj."}}},
    .inputs_first = false,
    .others = {".rotary_emb.inv_freq"}};
// [/map]

/// The same, of a model whose head is the table of the embedding.
inline hub_map const tied_llama_names = [] {
  hub_map map = llama_names;
  map.others.push_back("lm_head.weight");
  return map;
}();

}  // namespace models
