// SPDX-License-Identifier: BSL-1.0
//
// The names of vision Transformers: torchvision's vit_b_16 to vit_l_32, and Hugging Face's
// ViTForImageClassification.
#pragma once

#include <string>

#include <pipe/train/name_map.hpp>

namespace models::hub {

/// From the names of a VisionTransformer of ../vision_transformer.hpp to torchvision's.
template <class ViT>
pp::name_map torchvision_vit() {
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
    names.push_back({here + "1.1.", there + "mlp.0."});
    names.push_back({here + "1.3.", there + "mlp.3."});
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

}  // namespace models::hub
