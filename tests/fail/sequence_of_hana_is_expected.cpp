// error: wrong::sequence_of_hana_is_expected, .*Linear<2>
// needs: boost/hana.hpp
// SPDX-License-Identifier: BSL-1.0
//
// A layer alone is no list of layers.
#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>

#ifdef PIPE_EXPECT_OK
constexpr auto body = boost::hana::tuple_t<pp::Linear<2>>;
#else
constexpr pp::Linear<2> body;
#endif

struct Net : pp::Model<pp::Input<2>, pp::Unpack<pp::Seq, decltype(body)>, pp::CrossEntropy> {};
using Trainer = pp::Pipeline<Net, pp::MicroBatches<2>, pp::PortableHost>;
#include "program.hpp"
