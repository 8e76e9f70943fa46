// SPDX-License-Identifier: BSL-1.0
//
// The names of vision Transformers: torchvision's vit_b_16 to vit_l_32, and Hugging Face's
// ViTForImageClassification.
#pragma once

#include <string>

#include <pipe/weights/name_map.hpp>
#include <pipe/weights/weight_files.hpp>

#include "names_under.hpp"

namespace models::hub {

/// From the names of a VisionTransformer of ../vision_transformer.hpp to torchvision's. `expand`,
/// `contract`: what the file calls the two products of a multi-layer perceptron: "linear_1" and
/// "linear_2" in the files that torchvision downloads.
template <class ViT>
pp::name_map torchvision_vit(std::string const& expand = "0", std::string const& contract = "3") {
  pp::name_map names{{"class_token.weight", "class_token"},
                     {"pos_embedding.weight", "encoder.pos_embedding"},
                     {"norm.", "encoder.ln."},
                     {"head.", "heads.head."}};
  for (int i = 0; i < ViT::depth; ++i) {
    std::string const here = "layers." + std::to_string(i) + ".";
    std::string const there = "encoder.layers.encoder_layer_" + std::to_string(i) + ".";
    names.push_back({here + "0.0.", there + "ln_1."});
    names.push_back({here + "0.1.", there + "self_attention."});
    names.push_back({here + "1.0.", there + "ln_2."});
    names.push_back({here + "1.1.", there + "mlp." + expand + "."});
    names.push_back({here + "1.3.", there + "mlp." + contract + "."});
  }
  return names;
}

/// The same to those of Hugging Face's files, which have queries, keys and values in three tensors.
/// Its norms add 1e-12, where ../vision_transformer.hpp adds 1e-6, as torchvision's.
template <class ViT>
pp::name_map huggingface_vit() {
  pp::name_map names{{"class_token.weight", "vit.embeddings.cls_token"},
                     {"pos_embedding.weight", "vit.embeddings.position_embeddings"},
                     {"conv_proj.", "vit.embeddings.patch_embeddings.projection."},
                     {"norm.", "vit.layernorm."},
                     {"head.", "classifier."}};
  for (int i = 0; i < ViT::depth; ++i) {
    std::string const here = "layers." + std::to_string(i) + ".";
    std::string const there = "vit.encoder.layer." + std::to_string(i) + ".";
    std::string const attention = there + "attention.attention.";
    for (std::string const kind : {"weight", "bias"})
      names.push_back({here + "0.1.in_proj_" + kind,
                       attention + "query." + kind,
                       {attention + "key." + kind, attention + "value." + kind}});
    names.push_back({here + "0.0.", there + "layernorm_before."});
    names.push_back({here + "0.1.out_proj.", there + "attention.output.dense."});
    names.push_back({here + "1.0.", there + "layernorm_after."});
    names.push_back({here + "1.1.", there + "intermediate.dense."});
    names.push_back({here + "1.3.", there + "output.dense."});
  }
  return names;
}

/// That of these whose names the files have.
template <class ViT>
pp::name_map vit_of_files(pp::weight_files const& files) {
  if (has_names_under("vit.", files)) return huggingface_vit<ViT>();
  bool const are_older = has_names_under("encoder.layers.encoder_layer_0.mlp.linear_", files);
  return are_older ? torchvision_vit<ViT>("linear_1", "linear_2") : torchvision_vit<ViT>();
}

}  // namespace models::hub
