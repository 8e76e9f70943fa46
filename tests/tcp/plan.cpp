// SPDX-License-Identifier: BSL-1.0
//
// The plan of a pipeline, which a second program has of another width.
#include <pipe/pipe.hpp>

#include <pipe/runtime/fingerprint.hpp>

#include "tcp/plan.hpp"

using namespace pp;

#ifndef WIDTH
#define WIDTH 8
#endif
struct Net : Model<Input<2>, Linear<WIDTH>, Tanh, Linear<1>, MSE> {};
using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, MicroBatchSize<1>, PortableHost>;

std::uint64_t plan_of_program() { return detail::fingerprint(Trainer::compiled::description()); }
