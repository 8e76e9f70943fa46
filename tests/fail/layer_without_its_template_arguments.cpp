// error: type/value mismatch at argument 1 in template parameter list for .*Model|'Linear' requires template arguments
// error(nvcc): argument list for class template "pp::Linear" is missing
// errors: 2
// errors(nvcc): 1
// SPDX-License-Identifier: BSL-1.0
//
// A name without its template arguments is no type. The compiler says so by itself, and not much else.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear, MSE> {};
#endif

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
