// SPDX-License-Identifier: BSL-1.0
#include "bert.hpp"
#include "hub/bert.hpp"
#include "hub/vision_transformer.hpp"
#include "planned_model.hpp"
#include "transformers.hpp"
#include "vision_transformer.hpp"

using models::hub::torchvision_vit;

static listed<models::VitBase> const vit_base("vit-b-16", torchvision_vit<models::VitBase>());
static listed<models::VitLarge> const vit_large("vit-l-16", torchvision_vit<models::VitLarge>());
static listed<models::Gpt2Small> const gpt2_small("gpt2");
static listed<models::Gpt2Xl> const gpt2_xl("gpt2-xl");
static listed<models::BertBase> const bert_base("bert-base",
                                                models::hub::huggingface_bert<models::BertBase>());
static listed<models::BertLarge> const bert_large(
    "bert-large", models::hub::huggingface_bert<models::BertLarge>());
static listed<models::Llama2x7B> const llama2_7b("llama2-7b");
static listed<models::Llama2x70B> const llama2_70b("llama2-70b");
static listed<models::Llama3x8B> const llama3_8b("llama3-8b");
static listed<models::Llama3x70B> const llama3_70b("llama3-70b");
static listed<models::T6x8192x16> const t_6("t-6-8192-16");
static listed<models::T64x16384x32> const t_64("t-64-16384-32");
