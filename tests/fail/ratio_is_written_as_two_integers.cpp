// error: wrong::Layer<1, .*wrong::ratio_is_written_as_two_integers\b.*Dropout<
// compilers: g++ nvcc
// SPDX-License-Identifier: BSL-1.0
//
// A type holds no 0.1. (clang++ knows no such template argument before version 18.)
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Dropout<1, 10>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Dropout<0.1>, Linear<2>, MSE> {};
#endif
