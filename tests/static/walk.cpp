// SPDX-License-Identifier: BSL-1.0
//
// What docs/explanation/compiler.md and its pictures show: every pass is a value that can be asked.
// Compiling is passing.
#include <pipe/pipe.hpp>

using namespace pp;
using namespace pp::detail;

namespace walk {

using Block =
    Seq<Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<384>, GELUTanh, Linear<96>>>;
struct GPT : Model<Tokens<256, 128>, Embedding<96>, Positions, Repeat<8, Block>, LayerNorm,
                   Linear<256>, CrossEntropy> {};
using Trainer = Pipeline<GPT, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, AdamW>;

// [graph]
constexpr auto const& graph = GPT::graph;
static_assert(graph.size.ops == 118 && graph.size.values == 143 && graph.size.parameters == 102);
static_assert(graph.ops[0].kind == op_kind::lookup &&
              graph.ops[1].kind == op_kind::row_bias);  // Embedding, Positions
static_assert(graph.ops[3].kind == op_kind::matmul &&
              graph.ops[3].attributes.contraction().inner == 96 && graph.ops[3].columns == 3 * 96);
static_assert(graph.units[2].out ==
              sample_shape(128, 96));  // layer 2, the first Residual, keeps the shape
// [/graph]

// [gradients]
using passes = Trainer::compiled::passes;
static_assert(passes::gradient_sizes.input_ops == 82 && passes::gradient_sizes.weight_ops == 85);
static_assert(passes::backward.input_ops[0].kind == op_kind::matmul_input_gradient);  // the head's
static_assert(passes::backward.weight_ops[0].kind == op_kind::bias_gradient);  // and its weights'
static_assert(passes::backward.weight_ops[84].kind ==
              op_kind::lookup_gradient);  // at the end the table's
// [/gradients]

// [cut]
static_assert(passes::cuts[0] == 0 && passes::cuts[1] == 6 && passes::cuts[2] == 10 &&
              passes::cuts[3] == 14);
static_assert(passes::boundaries[2].forward.size() == 1);  // a chain hands on one value
static_assert(passes::boundaries[2].forward_bytes == 2 * 128 * 96 * sizeof(float));
// [/cut]

// [fuse]
constexpr auto const& kernels = passes::kernels.fused;
static_assert(kernels[detail::op_list::forward].segments.size() == 60);
static_assert(kernels[detail::op_list::input_gradients].segments.size() == 58);
static_assert(kernels[detail::op_list::weight_gradients].segments.size() == 52);
static_assert(passes::groups == 25);
static_assert(passes::group_at(5).anchor == op_kind::matmul &&
              passes::group_at(5).epilogue.size() == 2);  // bias, GELUTanh
// [/fuse]

// [schedule]
static_assert(Trainer::compiled::work::judgement().ok());
static_assert(Trainer::compiled::table().size(0) ==
              16);  // 8 forwards, 8 backwards; the update follows
static_assert(Trainer::compiled::table().at(0, 3).kind ==
              schedules::action_kind::forward);  // rank 0 begins with four
static_assert(Trainer::compiled::table().at(0, 4) ==
              schedules::action{schedules::action_kind::backward, 0, 0});
// [/schedule]

// [memory]
constexpr chunk_description const& first = Trainer::compiled::memory().chunks[0];
static_assert(first.keeping.records.slots == 4 && first.keeping.records.stride == 3'160'064);
static_assert(Trainer::plan.rank_bytes[0] == 19'078'016 &&
              Trainer::plan.rank_bytes[3] == 9'577'472);
// [/memory]

// The picture of the named value: that of examples/encoder_decoder.cpp.
using Think = Residual<LayerNorm, Linear<192>, GELUTanh, Linear<64>>;
struct Speller : Model<Tokens<10, 6>, Embedding<64>, Positions,
                       Repeat<2, Residual<LayerNorm, Attention<4, NotCausal>>, Think>, LayerNorm,
                       Stash<"digits">, Named<"words", Tokens<30, 10>>,
                       Named<"meaning", Embedding<64>>, Positions,
                       Repeat<2, Residual<LayerNorm, Attention<4>>,
                              Residual<LayerNorm, CrossAttention<4, "digits">>, Think>,
                       LayerNorm, Tied<"meaning">, CrossEntropy> {};

// [named]
using spelling =
    Pipeline<Speller, Stages<4>, MicroBatches<8>, MicroBatchSize<16>, AdamW>::compiled::passes;
static_assert(spelling::boundaries[1].forward.size() == 1 &&
              spelling::boundaries[1].gradient.size() == 1);
static_assert(spelling::boundaries[3].forward.size() == 2 &&
              spelling::boundaries[3].gradient.size() == 2);
static_assert(spelling::boundaries[3].forward_bytes == 16 * (6 * 64 + 10 * 64) * sizeof(float));
static_assert(spelling::programs<2, false>::passed_values.size() ==
              1);  // stage 2 copies the digits
static_assert(spelling::programs<2, false>::passed_gradients.size() == 1);  // and their gradient
// [/named]

// [again]
using Again = Pipeline<GPT, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, AdamW,
                       Recompute<op_kind::attention>>;
static_assert(Again::compiled::passes::recomputed.ops == 8);  // one attention in each block
static_assert(Again::plan.stages[0].saved_bytes < Trainer::plan.stages[0].saved_bytes);
// [/again]

}  // namespace walk
