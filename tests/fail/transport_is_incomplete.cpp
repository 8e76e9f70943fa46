// error: wrong::transport_is_incomplete, .*Threads<false>.*Missing<.*cancel_barrier>
// SPDX-License-Identifier: BSL-1.0
//
// A transport has everything that its concept asks for, with the right types.
#include <pipe/pipe.hpp>

using namespace pp;
using namespace pp::detail;

struct incomplete : in_process {
  using in_process::in_process;
  void cancel_barrier(int) {}
};

template <bool Complete>
struct Threads {
  using transport = std::conditional_t<Complete, in_process, incomplete>;
};

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Threads<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Threads<false>>;
#endif

#include "program.hpp"
