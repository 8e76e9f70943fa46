// error: wrong::inputs_have_the_wrong_type, .*Named<.*Tokens<11, 4>.*ExpectedElement<int>.*FoundElement<float>
// SPDX-License-Identifier: BSL-1.0
//
// The same for a further input.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<4, 6>, Stash<"left">, Named<"ids", Tokens<11, 4>>, Embedding<6>,
                   Pop<"left">, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
using numbers = std::vector<int>;
#else
using numbers = std::vector<float>;
#endif

void give(Trainer::batch& batch, numbers& values) { batch.set<"ids">(values); }
