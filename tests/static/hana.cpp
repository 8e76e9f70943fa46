// SPDX-License-Identifier: BSL-1.0
//
// Lists that Boost.Hana computes are the lists that one writes.
#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>

namespace {

using namespace pp;

namespace pyramid {
// [pyramid]
namespace hana = boost::hana;

constexpr auto widths = hana::tuple_c<int, 256, 128, 64>;
constexpr auto hidden = hana::flatten(hana::transform(
    widths, [](auto width) { return hana::tuple_t<Linear<decltype(width)::value>, ReLU>; }));
constexpr auto items = hana::concat(hana::prepend(hidden, hana::type_c<Input<784>>),
                                    hana::tuple_t<Linear<10>, CrossEntropy>);

struct Digits : Unpack<Model, decltype(items)> {};
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
using Cell = Residual<LayerNorm, Linear<Kernel * Width>, GELU, Linear<Width>>;

constexpr auto cells = hana::transform(hana::tuple_c<int, 1, 2, 3, 4>, [](auto i) {
  constexpr int n = decltype(i)::value;
  return hana::if_(hana::bool_c<(n % 2 == 0)>, hana::type_c<Cell<32, 4>>,
                   hana::type_c<Cell<32, 2>>);
});
using Tower = Unpack<Seq, decltype(cells)>;

struct Net : Model<Input<32>, Repeat<3, Tower>, Linear<2>, CrossEntropy> {};
// [/blocks]

static_assert(std::is_same_v<Tower, Seq<Cell<32, 2>, Cell<32, 4>, Cell<32, 2>, Cell<32, 4>>>);
}  // namespace blocks

// Every template over a list, every sequence, whatever its constness; the empty one as far as the
// template takes it.
template <class...>
struct Any;
constexpr auto two = boost::hana::tuple_t<ReLU, GELU>;
static_assert(std::is_same_v<Unpack<Residual, decltype(two)>, Residual<ReLU, GELU>>);
static_assert(std::is_same_v<Unpack<Seq, decltype((two))>, Seq<ReLU, GELU>>);
static_assert(
    std::is_same_v<Unpack<Any, boost::hana::basic_tuple<boost::hana::type<int>>>, Any<int>>);
static_assert(std::is_same_v<Unpack<Any, boost::hana::tuple<>>, Any<>>);
static_assert(std::is_same_v<Unpack<Any, decltype(boost::hana::to_set(two))>, Any<ReLU, GELU>>);

}  // namespace
