// error: wrong::option_is_unknown, .*ByProfile<.*layer_profile_of_net ?>
// SPDX-License-Identifier: BSL-1.0
//
// Times of F and B, but none of W.
#include <pipe/pipe.hpp>

using namespace pp;

struct layer_profile_of_net {
  static constexpr int layers = 2;
  static constexpr long forward_nanoseconds[] = {10, 20};
  static constexpr long backward_input_nanoseconds[] = {0, 20};
#ifdef PIPE_EXPECT_OK
  static constexpr long backward_weight_nanoseconds[] = {20, 20};
#endif
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

using Trainer = Pipeline<Net, PortableHost, AdamW, ByProfile<layer_profile_of_net>>;
#include "program.hpp"
