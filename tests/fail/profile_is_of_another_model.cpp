// error: wrong::profile_is_of_another_model, .*layer_profile_of_net.*Expected<2>.*Found<3>
// SPDX-License-Identifier: BSL-1.0
//
// A layer was removed after the times were measured: they would be those of other layers.
#include <pipe/pipe.hpp>

using namespace pp;

struct layer_profile_of_net {
  static constexpr int layers = 3;
  static constexpr long forward_nanoseconds[] = {10, 20, 30};
  static constexpr long backward_input_nanoseconds[] = {0, 20, 30};
  static constexpr long backward_weight_nanoseconds[] = {20, 20, 30};
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, ByProfile<layer_profile_of_net>>;
#include "program.hpp"
