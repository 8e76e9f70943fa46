// SPDX-License-Identifier: BSL-1.0
//
// AmoebaNet-D(L, D) as a function from two numbers to a list of layers, with the parameters that
// were published.
#include <boost/hana.hpp>

#include <pipe/hana.hpp>

#include "../../examples/models/amoebanet.hpp"

namespace models {

namespace hana = boost::hana;
using namespace hana::literals;

// [amoebanet]
// Normal cells with a number of filters; the first one follows a reduction.
constexpr auto cells(auto count, auto filters) {
  auto const first = hana::type_c<Then<Normal<filters, true>>>;
  auto const other = hana::type_c<Then<Normal<filters, false>>>;
  return hana::prepend(hana::replicate<hana::tuple_tag>(other, count - 1_c), first);
}
// AmoebaNet-D(L, D) of Real et al., 2019: L normal cells in three groups, with D filters in the
// first.
constexpr auto amoebanet(auto l, auto d) {
  auto const third = l / 3_c;
  return hana::make_tuple(
      hana::tuple_t<Input<224, 224, 3>, Op<d / 4, 3, Stride<2>, Padding<1>>, Stash<"earlier">,
                    Then<Reduction<d / 2, false>>, Then<Reduction<d, true>>>,
      cells(third, d), hana::type_c<Then<Reduction<2 * d, false>>>,        //
      cells(third, 2_c * d), hana::type_c<Then<Reduction<4 * d, false>>>,  //
      hana::drop_back(cells(third, 4_c * d), 1_c),
      hana::tuple_t<Normal<4 * d, false>, AvgPool2d<7>, Flatten, Linear<1000>, CrossEntropy>);
}

struct Computed : Model<decltype(amoebanet(18_c, 208_c))> {};
// [/amoebanet]

static_assert(parameters_of<Computed>() == 81'505'540);

}  // namespace models
