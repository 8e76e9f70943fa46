// error: type/value mismatch at argument 2 in template parameter list for .*Linear|template argument for template type parameter must be a type
// error(nvcc): expected a type specifier
// errors: 2
// errors(clang++): 3
// errors(nvcc): 1
// SPDX-License-Identifier: BSL-1.0
//
// A layer's input width is inferred. The compiler says by itself that an option is a type.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<3, 4>, Linear<2>, MSE> {};
#endif
