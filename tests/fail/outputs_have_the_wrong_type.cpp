// error: wrong::outputs_have_the_wrong_type, .*Net.*ExpectedElement<float>.*FoundElement<double>
// SPDX-License-Identifier: BSL-1.0
//
// What a model puts out is of the pipeline's precision.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
using numbers = std::vector<float>;
#else
using numbers = std::vector<double>;
#endif

void run(Trainer& trainer, std::vector<float> const& inputs, numbers& outputs) {
  trainer.forward(inputs, outputs);
}
