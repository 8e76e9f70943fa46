// error: no matching (function for call to .*Pipeline<Net.*brace-enclosed|constructor for initialization of 'Trainer')
// error(nvcc): no instance of constructor .* matches the argument list
// lines: 40
// SPDX-License-Identifier: BSL-1.0
//
// A wrong name of a setting in braces alone, for which compilers list constructors: errors.md says what to write to see the name.
#include <pipe/pipe.hpp>

#include <vector>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
void train() { Trainer trainer({.optimizer = {.learning_rate = 0.1}}); }
#else
void train() { Trainer trainer({.learning_rte = 0.1}); }
#endif
