// error: wrong::recompute_is_incomplete, .*Norms<false>.*Missing<.*keeps_last>
// SPDX-License-Identifier: BSL-1.0
//
// A recompute policy says everything that its concept asks for.
#include <pipe/pipe.hpp>

using namespace pp;

struct facts {
  static constexpr bool keeps_last = true;
};
struct no_facts {};

template <bool Complete>
struct Norms : std::conditional_t<Complete, facts, no_facts> {
  static constexpr bool recomputes = true;
  static constexpr bool drops(op_kind kind) { return kind == op_kind::norm; }
};

struct Net : Model<Input<3>, Linear<4>, LayerNorm, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Norms<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Norms<false>>;
#endif

#include "program.hpp"
