// error: wrong::only_a_pipeline_can_be_explained, .*Net>
// SPDX-License-Identifier: BSL-1.0
//
// A model alone has no plan.
#include <string>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
std::string text() { return explain<Pipeline<Net, PortableHost>>(); }
#else
std::string text() { return explain<Net>(); }
#endif
