// error: wrong::element_is_not_a_hana_type, .*Element<1>.*Linear<2>
// needs: boost/hana.hpp
// SPDX-License-Identifier: BSL-1.0
//
// A computed list holds types as hana::type_c, not layers as objects.
#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>

namespace hana = boost::hana;

#ifdef PIPE_EXPECT_OK
constexpr auto second = hana::type_c<pp::Linear<2>>;
#else
constexpr pp::Linear<2> second;
#endif
constexpr auto items =
    hana::make_tuple(hana::type_c<pp::Input<2>>, second, hana::type_c<pp::CrossEntropy>);

struct Net : pp::Unpack<pp::Model, decltype(items)> {};
using Trainer = pp::Pipeline<Net, pp::MicroBatches<2>, pp::PortableHost>;
#include "program.hpp"
