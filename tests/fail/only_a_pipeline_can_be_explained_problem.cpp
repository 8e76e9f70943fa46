// error: wrong::only_a_pipeline_can_be_explained, .*Net>
// SPDX-License-Identifier: BSL-1.0
//
// A model alone has no schedule, and so no problem of one.
#include <string>

#include <pipe/pipe.hpp>
#include <pipe/report/problem_file.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
std::string text() { return explain_problem<Pipeline<Net, PortableHost>>(); }
#else
std::string text() { return explain_problem<Net>(); }
#endif
