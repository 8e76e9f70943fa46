// error: wrong::layers_are_nested_too_deep, .*Residual<.*Expected<96>
// SPDX-License-Identifier: BSL-1.0
//
// 120 lists, one inside the other.
#include <pipe/pipe.hpp>

using namespace pp;

template <int N>
struct nested {
  using type = Residual<Seq<typename nested<N - 1>::type>, Linear<9>>;
};
template <>
struct nested<0> {
  using type = Linear<9>;
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<9>, nested<48>::type, MSE> {};
#else
struct Net : Model<Input<9>, nested<60>::type, MSE> {};
#endif

using Trainer = Pipeline<Net, PortableHost>;

static_assert(Trainer::plan.bubble < 1);
