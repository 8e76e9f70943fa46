// SPDX-License-Identifier: BSL-1.0
//
// Lists that Boost.Hana computes are the lists that one writes.
// [includes]
#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>

using namespace pp;
// [/includes]

namespace {

namespace pyramid {
// [pyramid]
namespace hana = boost::hana;

constexpr auto widths = hana::tuple_c<int, 256, 128, 64>;
constexpr auto hidden = hana::flatten(hana::transform(
    widths, [](auto width) { return hana::tuple_t<Linear<decltype(width)::value>, ReLU>; }));
constexpr auto items = hana::concat(hana::prepend(hidden, hana::type_c<Input<784>>),
                                    hana::tuple_t<Linear<10>, CrossEntropy>);

struct Digits : Model<decltype(items)> {};
// [/pyramid]

using Written = Model<Input<784>, Linear<256>, ReLU, Linear<128>, ReLU, Linear<64>, ReLU,
                      Linear<10>, CrossEntropy>;
static_assert(std::is_base_of_v<Written, Digits>);
static_assert(std::is_same_v<Unpack<Model, decltype(items)>, Written>);

using Trainer = Pipeline<Digits, Stages<2>, MicroBatches<2>, MicroBatchSize<4>, PortableHost>;
static_assert(Trainer::plan.parameters == 785 * 256 + 257 * 128 + 129 * 64 + 65 * 10);
}  // namespace pyramid

namespace blocks {
namespace hana = boost::hana;

// [blocks]
template <int Width, int Kernel>
using Cell = Residual<LayerNorm, Linear<Kernel * Width>, GELUTanh, Linear<Width>>;

constexpr auto cells = hana::transform(hana::tuple_c<int, 1, 2, 3, 4>, [](auto i) {
  constexpr int n = decltype(i)::value;
  return hana::if_(hana::bool_c<(n % 2 == 0)>, hana::type_c<Cell<32, 4>>,
                   hana::type_c<Cell<32, 2>>);
});

struct Net : Model<Input<32>, Repeat<3, decltype(cells)>, Linear<2>, CrossEntropy> {};
// [/blocks]

using Tower = Repeat<3, Cell<32, 2>, Cell<32, 4>, Cell<32, 2>, Cell<32, 4>>;
static_assert(std::is_base_of_v<Tower, Repeat<3, decltype(cells)>>);
static_assert(std::is_same_v<Unpack<Seq, decltype(cells)>,
                             Seq<Cell<32, 2>, Cell<32, 4>, Cell<32, 2>, Cell<32, 4>>>);
}  // namespace blocks

namespace functions {
namespace hana = boost::hana;

/// The parameters of a model that are trained.
template <class M>
constexpr long parameters_of() {
  long sum = 0;
  for (auto const& p : M::graph.parameters)
    if (p.trained && p.tied_to < 0) sum += p.form.elements();
  return sum;
}

// [transformer]
// T(L, H, A) of Huang et al., GPipe, 2019: L layers of an encoder and of a decoder, A heads, and H
// hidden units after each attention. The width is 1024.
constexpr auto attentive(auto attention, auto hidden) {
  return hana::tuple_t<Residual<LayerNorm, typename decltype(attention)::type>,
                       Residual<LayerNorm, Linear<hidden, NoBias>, ReLU, Linear<1024, NoBias>>>;
}
constexpr auto transformer(auto layers, auto hidden, auto heads) {
  auto const self = hana::type_c<Attention<heads, NotCausal, NoBias>>;
  auto const masked = hana::type_c<Residual<LayerNorm, Attention<heads, NoBias>>>;
  auto const cross = hana::type_c<CrossAttention<heads, "source", NoBias>>;
  auto const encoder = attentive(self, hidden);
  auto const decoder = hana::prepend(attentive(cross, hidden), masked);
  return hana::make_tuple(hana::tuple_t<Tokens<64000, 64>, Embedding<1024>, SinusoidalPositions>,
                          hana::type_c<Repeat<layers, decltype(encoder)>>,
                          hana::tuple_t<Stash<"source">, Named<"target", Tokens<64000, 64>>>,
                          hana::tuple_t<Named<"words", Embedding<1024>>, SinusoidalPositions>,
                          hana::type_c<Repeat<layers, decltype(decoder)>>,
                          hana::tuple_t<Tied<"words">, CrossEntropy>);
}

using namespace hana::literals;
struct T400M : Model<decltype(transformer(6_c, 8192_c, 16_c))> {};
struct T1300M : Model<decltype(transformer(24_c, 8192_c, 16_c))> {};
// [/transformer]

// The published sizes are those of the matrices; five norms of each layer come on top.
static_assert(parameters_of<T400M>() == 407'896'064 + 6 * 5 * 2 * 1024);
static_assert(parameters_of<T1300M>() == 1'238'368'256 + 24 * 5 * 2 * 1024);
}  // namespace functions

namespace lists {
namespace hana = boost::hana;
using namespace hana::literals;

// [lists]
struct Small : Model<Input<8>, Linear<16>, ReLU, Linear<4>, MSE> {};

constexpr auto is_relu = hana::equal.to(hana::type_c<ReLU>);
constexpr auto smooth = hana::replace_if(layers_of<Small>, is_relu, hana::type_c<GELUTanh>);
struct Smooth : Model<decltype(smooth)> {};

constexpr auto normed = hana::insert(layers_of<Small>, 1_c, hana::type_c<LayerNorm>);
struct Normed : Model<decltype(normed)> {};
// [/lists]

static_assert(std::is_base_of_v<Model<Input<8>, Linear<16>, GELUTanh, Linear<4>, MSE>, Smooth>);
static_assert(
    std::is_base_of_v<Model<Input<8>, LayerNorm, Linear<16>, ReLU, Linear<4>, MSE>, Normed>);
static_assert(std::is_base_of_v<Model<Input<8>, Linear<16>, ReLU, Linear<4>, MSE>,
                                Model<decltype(layers_of<Small>)>>);
static_assert(hana::count_if(layers_of<Small>, is_relu) == hana::size_c<1>);
static_assert(layers_of<Repeat<3, ReLU, GELUTanh>> == hana::tuple_t<ReLU, GELUTanh>);
static_assert(layers_of<Seq<>> == hana::tuple_t<>);

// Lists in lists, among layers, and of no or one layer.
constexpr auto nested = hana::make_tuple(hana::tuple_t<Linear<8>, ReLU>, hana::type_c<Linear<4>>);
constexpr auto maybe = hana::if_(hana::false_c, hana::just(hana::type_c<GELUTanh>), hana::nothing);
using Around = Model<Input<8>, decltype(nested), LayerNorm, decltype(maybe),
                     decltype(hana::just(hana::type_c<Softmax>)), MSE>;
using Written = Model<Input<8>, Linear<8>, ReLU, Linear<4>, LayerNorm, Softmax, MSE>;
static_assert(std::is_base_of_v<Written, Around>);

// Every template over layers; of parameters and names, what is written.
constexpr auto branches = hana::tuple_t<Linear<4>, Seq<ReLU, Linear<4>>>;
constexpr auto linears = hana::tuple_t<Linear<2>, Linear<4>>;
using Outer = Model<Input<8>, Group<LearningRate<1, 2>, decltype(nested)>,
                    Frozen<decltype(nested), Linear<8>>, Residual<decltype(nested), Linear<8>>,
                    CutInside<Residual<decltype(nested), Linear<8>>, decltype(nested)>,
                    Seq<ReLU, decltype(nested)>, SumOf<decltype(branches)>,
                    ConcatOf<decltype(hana::type_c<Linear<2>>), decltype(linears)>,
                    Named<"one", decltype(nested)>, Named<"two", decltype(hana::type_c<Linear<8>>)>,
                    Reversible<decltype(nested), Linear<4>>, LoRA<decltype(nested), 2>, MSE>;
using Inner =
    Model<Input<8>, Group<LearningRate<1, 2>, Linear<8>, ReLU, Linear<4>>,
          Frozen<Linear<8>, ReLU, Linear<4>, Linear<8>>,
          Residual<Linear<8>, ReLU, Linear<4>, Linear<8>>,
          CutInside<Residual<Linear<8>, ReLU, Linear<4>, Linear<8>>, Linear<8>, ReLU, Linear<4>>,
          Seq<ReLU, Linear<8>, ReLU, Linear<4>>, SumOf<Linear<4>, Seq<ReLU, Linear<4>>>,
          ConcatOf<Linear<2>, Linear<2>, Linear<4>>, Named<"one", Seq<Linear<8>, ReLU, Linear<4>>>,
          Named<"two", Linear<8>>, Reversible<Seq<Linear<8>, ReLU, Linear<4>>, Linear<4>>,
          LoRA<Seq<Linear<8>, ReLU, Linear<4>>, 2>, MSE>;
template <class M>
constexpr unsigned long long hash_of_names() {
  unsigned long long sum = 0;
  for (unsigned long long const one : M::described::names(-1).hashes) sum = sum * 31 + one;
  return sum;
}
static_assert(hash_of_names<Outer>() == hash_of_names<Inner>());
static_assert(Outer::graph.size.units == Inner::graph.size.units);
static_assert(functions::parameters_of<Outer>() == functions::parameters_of<Inner>());
}  // namespace lists

// Every template over a list, every sequence, whatever its constness; the empty one as far as the
// template takes it.
template <class...>
struct Any;
constexpr auto two = boost::hana::tuple_t<ReLU, GELUTanh>;
static_assert(std::is_same_v<Unpack<Residual, decltype(two)>, Residual<ReLU, GELUTanh>>);
static_assert(std::is_same_v<Unpack<Seq, decltype((two))>, Seq<ReLU, GELUTanh>>);
static_assert(
    std::is_same_v<Unpack<Any, boost::hana::basic_tuple<boost::hana::type<int>>>, Any<int>>);
static_assert(std::is_same_v<Unpack<Any, boost::hana::tuple<>>, Any<>>);
static_assert(std::is_same_v<Unpack<Any, decltype(boost::hana::to_set(two))>, Any<ReLU, GELUTanh>>);

}  // namespace
