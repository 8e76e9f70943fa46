// error: wrong::element_is_not_a_hana_type, .*Element<1>.*Linear<2>
// needs: boost/hana.hpp
// SPDX-License-Identifier: BSL-1.0
//
// A list among the items of a model holds types, not layers as objects.
#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>

namespace hana = boost::hana;

#ifdef PIPE_EXPECT_OK
constexpr auto second = hana::type_c<pp::Linear<2>>;
#else
constexpr pp::Linear<2> second;
#endif
constexpr auto body = hana::make_tuple(hana::type_c<pp::LayerNorm>, second);

struct Net : pp::Model<pp::Input<2>, decltype(body), pp::CrossEntropy> {};
using Trainer = pp::Pipeline<Net, pp::MicroBatches<2>, pp::PortableHost>;
#include "program.hpp"
