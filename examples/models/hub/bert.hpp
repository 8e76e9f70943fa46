// SPDX-License-Identifier: BSL-1.0
//
// The names of Hugging Face's BertForSequenceClassification, and of bert-base-uncased.
#pragma once

#include <string>

#include <pipe/weights/name_map.hpp>
#include <pipe/weights/weight_files.hpp>

namespace models::hub {

/// From the names of a Bert of ../bert.hpp to Hugging Face's. `scale`, `shift`: what the file calls
/// the parameters of norms: "gamma" and "beta" in files of before 2019, as bert-base-uncased.
template <class Bert>
pp::name_map huggingface_bert(std::string const& scale = "weight",
                              std::string const& shift = "bias") {
  std::string const embeddings = "bert.embeddings.";
  pp::name_map names{{"words.", embeddings + "word_embeddings."},
                     {"positions.", embeddings + "position_embeddings."},
                     {"kinds.", embeddings + "token_type_embeddings."},
                     {"pooler.", "bert.pooler.dense."}};
  auto const add_norm = [&](std::string const& here, std::string const& there) {
    names.push_back({here + "weight", there + scale});
    names.push_back({here + "bias", there + shift});
  };
  add_norm("norm.", embeddings + "LayerNorm.");
  for (int i = 0; i < Bert::depth; ++i) {
    std::string const here = "layers." + std::to_string(i) + ".";
    std::string const there = "bert.encoder.layer." + std::to_string(i) + ".";
    std::string const attention = there + "attention.self.";
    for (std::string const kind : {"weight", "bias"})
      names.push_back({here + "0.0.in_proj_" + kind,
                       attention + "query." + kind,
                       {attention + "key." + kind, attention + "value." + kind}});
    names.push_back({here + "0.0.out_proj.", there + "attention.output.dense."});
    add_norm(here + "1.", there + "attention.output.LayerNorm.");
    names.push_back({here + "2.0.", there + "intermediate.dense."});
    names.push_back({here + "2.2.", there + "output.dense."});
    add_norm(here + "3.", there + "output.LayerNorm.");
  }
  return names;
}

/// The same, with the names of norms that the files have.
template <class Bert>
pp::name_map huggingface_bert(pp::weight_files const& files) {
  bool const are_older = files.has("bert.embeddings.LayerNorm.gamma");
  return are_older ? huggingface_bert<Bert>("gamma", "beta") : huggingface_bert<Bert>();
}

}  // namespace models::hub
