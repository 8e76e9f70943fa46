// SPDX-License-Identifier: BSL-1.0
//
// The names of LLaMA 2 and 3, and of models of this architecture, in the files of hubs. Rotary
// positions rotate the two halves of a head there as here, so queries and keys are as they are.
#pragma once

#include <string>

#include <pipe/weights/name_map.hpp>

namespace models::hub {

// [map]
/// From the names of a Llama of ../transformers.hpp to Hugging Face's. A second copy of the table
/// of the embedding, where it is the head, is passed over.
template <class Llama>
pp::name_map huggingface_llama() {
  pp::name_map names{{"embed_tokens.", "model.embed_tokens."},
                     {"norm.", "model.norm."},
                     {.there = "lm_head.weight", .passed_over = true}};
  for (int i = 0; i < Llama::depth; ++i) {
    std::string const here = "layers." + std::to_string(i) + ".", there = "model." + here;
    std::string const attention = there + "self_attn.", mlp = there + "mlp.";
    names.push_back({here + "0.0.", there + "input_layernorm."});
    names.push_back({here + "0.1.in_proj_weight",
                     attention + "q_proj.weight",
                     {attention + "k_proj.weight", attention + "v_proj.weight"}});
    names.push_back({here + "0.1.out_proj.", attention + "o_proj."});
    names.push_back({here + "1.0.", there + "post_attention_layernorm."});
    names.push_back({here + "1.1.weight", mlp + "gate_proj.weight", {mlp + "up_proj.weight"}});
    names.push_back({here + "1.3.", mlp + "down_proj."});
    names.push_back({.there = attention + "rotary_emb.inv_freq", .passed_over = true});
  }
  return names;
}
// [/map]

}  // namespace models::hub
