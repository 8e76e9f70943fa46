// error: wrong::lengths_are_of_token_ids_alone, .*Named<.*Input<3>.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// Each sample has as many of these numbers.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, MeanPool, ConcatOf<Identity, Named<"age", Input<3>>>,
                   Linear<3>, CrossEntropy> {};
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;

void give(Trainer::batch& b, std::span<int const> lengths) {
#ifdef PIPE_EXPECT_OK
  b.set_lengths(lengths);
#else
  b.set_lengths<"age">(lengths);
#endif
}

int main() {}
