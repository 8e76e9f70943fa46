// SPDX-License-Identifier: BSL-1.0
#include "bert.hpp"
#include "hub/bert.hpp"
#include "hub/gpt2.hpp"
#include "hub/llama.hpp"
#include "hub/vision_transformer.hpp"
#include "planned_model.hpp"
#include "transformers.hpp"
#include "vision_transformer.hpp"

// The trained numbers as published.
namespace models {

inline constexpr long norms_of_a_layer = 5 * 2 * 1024;
static_assert(parameters_of<BertBase>() == 109'482'240 + 2 * 768 + 2);
static_assert(parameters_of<BertLarge>() == 335'141'888 + 2 * 1024 + 2);
static_assert(parameters_of<Gpt2Small>() == 124'439'808);
static_assert(parameters_of<Gpt2<24, 1024, 16>>() == 354'823'168);
static_assert(parameters_of<Gpt2<36, 1280, 20>>() == 774'030'080);
static_assert(parameters_of<Gpt2Xl>() == 1'557'611'200);
static_assert(parameters_of<TinyLlama>() == 1'100'048'384);
static_assert(parameters_of<SmolLm135M>() == 134'515'008);
static_assert(parameters_of<Llama2x7B>() == 6'738'415'616);
static_assert(parameters_of<Llama2x13B>() == 13'015'864'320);
static_assert(parameters_of<Llama2x70B>() == 68'976'648'192);
static_assert(parameters_of<Llama3x8B>() == 8'030'261'248);
static_assert(parameters_of<Llama3x70B>() == 70'553'706'496);
static_assert(parameters_of<T6x8192x16>() == 407'896'064 + 6 * norms_of_a_layer);
static_assert(parameters_of<T<24, 8192, 16>>() == 1'238'368'256 + 24 * norms_of_a_layer);
static_assert(parameters_of<T<12, 16384, 32>>() == 1'238'368'256 + 12 * norms_of_a_layer);
static_assert(parameters_of<T<32, 16384, 32>>() == 3'083'862'016 + 32 * norms_of_a_layer);
static_assert(parameters_of<T64x16384x32>() == 6'036'652'032 + 64 * norms_of_a_layer);
static_assert(parameters_of<VitBase>() == 86'567'656);
static_assert(parameters_of<VitLarge>() == 304'326'632);

}  // namespace models

using namespace models::hub;

static listed<models::VitBase> const vit_base("vit-b-16", vit_of_files<models::VitBase>);
static listed<models::VitLarge> const vit_large("vit-l-16", vit_of_files<models::VitLarge>);
static listed<models::Gpt2Small> const gpt2_small("gpt2", huggingface_gpt2<models::Gpt2Small>);
static listed<models::Gpt2Xl> const gpt2_xl("gpt2-xl", huggingface_gpt2<models::Gpt2Xl>);
static listed<models::BertBase> const bert_base("bert-base", huggingface_bert<models::BertBase>);
static listed<models::BertLarge> const bert_large("bert-large",
                                                  huggingface_bert<models::BertLarge>);
static listed<models::Llama2x7B> const llama2_7b("llama2-7b", huggingface_llama<models::Llama2x7B>);
static listed<models::Llama2x70B> const llama2_70b("llama2-70b",
                                                   huggingface_llama<models::Llama2x70B>);
static listed<models::Llama3x8B> const llama3_8b("llama3-8b", huggingface_llama<models::Llama3x8B>);
static listed<models::Llama3x70B> const llama3_70b("llama3-70b",
                                                   huggingface_llama<models::Llama3x70B>);
static listed<models::T6x8192x16> const t_6("t-6-8192-16");
static listed<models::T64x16384x32> const t_64("t-64-16384-32");
