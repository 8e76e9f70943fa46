// error: wrong::type_has_no_list_of_layers, .*Linear<2>
// needs: boost/hana.hpp
// SPDX-License-Identifier: BSL-1.0
//
// A layer that is made of no other layers lists none.
#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>

#ifdef PIPE_EXPECT_OK
using Body = pp::Seq<pp::Linear<2>>;
#else
using Body = pp::Linear<2>;
#endif

struct Net : pp::Model<pp::Input<2>, pp::LayerNorm, decltype(pp::layers_of<Body>), pp::MSE> {};
using Trainer = pp::Pipeline<Net, pp::MicroBatches<2>, pp::PortableHost>;
#include "program.hpp"
