// error: wrong::option_is_unknown, .*ByProfile<.*Stages<2> ?>
// SPDX-License-Identifier: BSL-1.0
//
// A profile that is none makes no option.
#include <pipe/pipe.hpp>

using namespace pp;

struct layer_profile_of_net {
  static constexpr int layers = 2;
  static constexpr long forward_nanoseconds[] = {10, 20};
  static constexpr long backward_nanoseconds[] = {20, 40};
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, ByProfile<layer_profile_of_net>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, ByProfile<Stages<2>>>;
#endif

#include "program.hpp"
