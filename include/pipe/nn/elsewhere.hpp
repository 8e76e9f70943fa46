// SPDX-License-Identifier: BSL-1.0
//
// Names of layers, losses and optimizers of other libraries that this one does not have: a model or
// a Pipeline that uses one is refused in a line that names a replacement. docs/reference/not_yet.md
// lists them. A layer that is added later takes its name from here.
//
// A name is a template where its numbers can neither be inferred nor have a default: `Conv3d<16,
// 3>` but `BatchNorm2d`, since one name cannot be both. Under `using namespace pp` at global scope
// each of them would collide with a type of the program of that name, so common words (Identity,
// Dense, BatchSize) are only listed in the page.
#pragma once

#include <pipe/graph/layers.hpp>

namespace pp {

/// Replacements that are not a single type.
namespace instead {
struct Attention_of_the_number_of_heads;
struct AvgPool2d_of_its_window;
struct Custom_layer_of_your_own;
struct HostThreads_and_Stages;
struct Huber_of_its_delta;
struct Linear_GELU_Linear;
struct MaxPool2d_of_its_window;
struct Pad_with_rows_first;
struct ReflectionPad_with_rows_first;
struct ReplicationPad_with_rows_first;
struct Residual_of_LayerNorm_and_Attention_then_of_LayerNorm_and_Linear;
struct Seq_of_the_layers;
struct UpsampleNearest_or_UpsampleBilinear;
struct class_numbers_and_CrossEntropy;
struct element_loss_of_your_own;
struct label_loss_of_your_own;
}  // namespace instead

/// Base of a name without a layer; `Instead` is the replacement that the diagnostic names.
template <class Instead>
struct no_such {
  using use_instead = Instead;
};

template <auto...>
struct Conv3d : no_such<instead::Custom_layer_of_your_own> {};
template <auto...>
struct MaxPool : no_such<instead::MaxPool2d_of_its_window> {};
template <auto...>
struct AvgPool : no_such<instead::AvgPool2d_of_its_window> {};
struct MeanPool;
struct GlobalAvgPool : no_such<MeanPool> {};

template <auto...>
struct Upsample : no_such<instead::UpsampleNearest_or_UpsampleBilinear> {};
template <auto...>
struct ZeroPad2d : no_such<instead::Pad_with_rows_first> {};
template <auto...>
struct ReflectionPad2d : no_such<instead::ReflectionPad_with_rows_first> {};
template <auto...>
struct ReplicationPad2d : no_such<instead::ReplicationPad_with_rows_first> {};

struct SinusoidalPositions;
struct PositionalEncoding : no_such<SinusoidalPositions> {};

struct BatchNorm;
struct BatchNorm1d : no_such<BatchNorm> {};
struct BatchNorm2d : no_such<BatchNorm> {};
struct InstanceNorm;
struct InstanceNorm1d : no_such<InstanceNorm> {};
struct InstanceNorm2d : no_such<InstanceNorm> {};

template <auto...>
struct LSTM : no_such<instead::Attention_of_the_number_of_heads> {};
template <auto...>
struct GRU : no_such<instead::Attention_of_the_number_of_heads> {};
template <auto...>
struct RNN : no_such<instead::Attention_of_the_number_of_heads> {};
template <auto...>
struct MultiheadAttention : no_such<instead::Attention_of_the_number_of_heads> {};
template <auto...>
struct TransformerEncoderLayer
    : no_such<instead::Residual_of_LayerNorm_and_Attention_then_of_LayerNorm_and_Linear> {};
template <auto...>
struct TransformerDecoderLayer
    : no_such<instead::Residual_of_LayerNorm_and_Attention_then_of_LayerNorm_and_Linear> {};
template <auto...>
struct MoE : no_such<instead::Linear_GELU_Linear> {};
template <class...>
struct Sequential : no_such<instead::Seq_of_the_layers> {};

struct SiLU;
struct Swish : no_such<SiLU> {};
struct PReLU : no_such<instead::Custom_layer_of_your_own> {};

struct CrossEntropy;
struct MSE;
struct BCE;
struct CrossEntropyLoss : no_such<CrossEntropy> {};
struct NLLLoss : no_such<CrossEntropy> {};
struct LogSoftmax : no_such<CrossEntropy> {};
struct MSELoss : no_such<MSE> {};
struct BCELoss : no_such<BCE> {};
struct BCEWithLogitsLoss : no_such<BCE> {};
struct HuberLoss : no_such<instead::Huber_of_its_delta> {};
struct SmoothL1Loss : no_such<instead::Huber_of_its_delta> {};
struct L1Loss : no_such<instead::element_loss_of_your_own> {};
struct MAE : no_such<instead::element_loss_of_your_own> {};
struct KLDivLoss : no_such<instead::element_loss_of_your_own> {};
struct FocalLoss : no_such<instead::label_loss_of_your_own> {};
struct CTCLoss : no_such<instead::class_numbers_and_CrossEntropy> {};

template <auto...>
struct DataParallel : no_such<instead::HostThreads_and_Stages> {};
template <auto...>
struct TensorParallel : no_such<instead::HostThreads_and_Stages> {};

}  // namespace pp
