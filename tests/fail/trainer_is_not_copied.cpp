// error: (use of deleted function|call to deleted constructor|cannot be referenced -- it is a deleted function)
// SPDX-License-Identifier: BSL-1.0
//
// A trainer is moved, not copied.
#include <utility>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost, AdamW>;

#ifdef PIPE_EXPECT_OK
Trainer second(Trainer& first) { return std::move(first); }
#else
Trainer second(Trainer& first) { return first; }
#endif
