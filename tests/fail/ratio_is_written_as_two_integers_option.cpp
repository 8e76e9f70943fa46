// error: wrong::Layer<1, .*wrong::ratio_is_written_as_two_integers\b.*LabelSmoothing<
// compilers: g++ nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Nor does an option hold one.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, With<CrossEntropy, LabelSmoothing<1, 10>>> {};
#else
struct Net : Model<Input<3>, Linear<4>, With<CrossEntropy, LabelSmoothing<0.1>>> {};
#endif
