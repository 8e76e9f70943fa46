// error: wrong::Layer<0, .*wrong::residual_must_keep_the_shape\b, pp::Residual<pp::Linear<3> ?>, .*Expected<2>.*Found<3>
// needs: boost/hana.hpp
// SPDX-License-Identifier: BSL-1.0
//
// A layer with a computed list is named as if it were written.
#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>

namespace hana = boost::hana;

#ifdef PIPE_EXPECT_OK
constexpr auto body = hana::tuple_t<pp::Linear<2>>;
#else
constexpr auto body = hana::tuple_t<pp::Linear<3>>;
#endif

struct Net : pp::Model<pp::Input<2>, pp::Residual<decltype(body)>, pp::CrossEntropy> {};
using Trainer = pp::Pipeline<Net, pp::MicroBatches<2>, pp::PortableHost>;
#include "program.hpp"
