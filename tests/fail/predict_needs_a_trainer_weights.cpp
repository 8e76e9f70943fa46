// error: wrong::predict_needs_a_trainer, .*model_weights<Net.*UseInstead<.*network_and_its_forward>
// SPDX-License-Identifier: BSL-1.0
//
// Weights without a trainer.
#include <pipe/pipe.hpp>

#include <vector>

#include <pipe/infer/model_weights.hpp>
#include <pipe/infer/network.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
void outputs(network<Net> const& net, std::vector<float> const& x, std::vector<float>& y,
             network<Net>::workspace& room) {
  net.forward(x, y, room);
}
#else
void outputs(model_weights<Net>& net, std::vector<float> const& x, std::vector<float>& y) {
  y = predict(net, x);
}
#endif
