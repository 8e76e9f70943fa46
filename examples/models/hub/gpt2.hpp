// SPDX-License-Identifier: BSL-1.0
//
// The names of GPT-2 in the files of hubs, whose matrices are those of a Conv1D: inputs by outputs.
#pragma once

#include <string>

#include <pipe/weights/name_map.hpp>
#include <pipe/weights/weight_files.hpp>

#include "names_under.hpp"

namespace models::hub {

/// From the names of a Gpt2 of ../transformers.hpp to Hugging Face's. `prefix`: of all names there,
/// "transformer." in files that transformers saves, none in the published ones. The masks of older
/// files are passed over, and so is the head, which is the table of the embedding.
template <class Gpt2>
pp::name_map huggingface_gpt2(std::string const& prefix = {}) {
  pp::name_map names{{.there = "lm_head.weight", .passed_over = true}};
  for (std::string const same : {"wte.", "wpe.", "ln_f."}) names.push_back({same, prefix + same});
  for (int i = 0; i < Gpt2::depth; ++i) {
    std::string const here = "h." + std::to_string(i) + ".", there = prefix + here;
    auto const add_linear = [&](std::string const& name, std::string const& other) {
      names.push_back({.here = here + name, .there = there + other, .transposed = true});
    };
    names.push_back({here + "0.0.", there + "ln_1."});
    add_linear("0.1.in_proj_weight", "attn.c_attn.weight");
    add_linear("0.1.in_proj_bias", "attn.c_attn.bias");
    add_linear("0.1.out_proj.", "attn.c_proj.");
    names.push_back({here + "1.0.", there + "ln_2."});
    add_linear("1.1.", "mlp.c_fc.");
    add_linear("1.3.", "mlp.c_proj.");
    for (std::string const mask : {"attn.bias", "attn.masked_bias"})
      names.push_back({.there = there + mask, .passed_over = true});
  }
  return names;
}

/// The same, with the prefix that the files have.
template <class Gpt2>
pp::name_map huggingface_gpt2(pp::weight_files const& files) {
  std::string const prefix = "transformer.";
  return huggingface_gpt2<Gpt2>(has_names_under(prefix, files) ? prefix : "");
}

}  // namespace models::hub
