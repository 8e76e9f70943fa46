// error: wrong::pipeline_has_samples_of_one_length, .*NoLengths
// SPDX-License-Identifier: BSL-1.0
//
// Without Lengths a sample costs as much as any other, whatever its length.
#include <string>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/report/explain_lengths.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#else
using Trainer = Pipeline<Net, PortableHost>;
#endif

std::string told(std::vector<int> const& lengths) { return explain_lengths<Trainer>(lengths); }
