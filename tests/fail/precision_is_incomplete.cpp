// error: wrong::precision_is_incomplete, .*Single<false>.*Missing<.*name>
// SPDX-License-Identifier: BSL-1.0
//
// A precision says everything that its concept asks for.
#include <pipe/pipe.hpp>

using namespace pp;
using namespace pp::detail;

struct facts {
  static constexpr char const* name = "single";
};
struct no_facts {};

template <bool Complete>
struct Single : number_types<float, float, dtype::f32>,
                std::conditional_t<Complete, facts, no_facts> {};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Single<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Single<false>>;
#endif

#include "program.hpp"
