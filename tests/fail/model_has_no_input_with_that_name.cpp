// error: wrong::model_has_no_input_with_that_name, .*Net.*Called<'t', 'h', 'i', 'r', 'd'>
// SPDX-License-Identifier: BSL-1.0
//
// Further inputs are given to a batch by their names.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net
    : Model<Input<3>, Stash<"first">, Named<"second", Input<3>>, Pop<"first">, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

void give(Trainer::batch& batch, std::span<float const> numbers) {
#ifdef PIPE_EXPECT_OK
  batch.set<"second">(numbers);
#else
  batch.set<"third">(numbers);
#endif
}
