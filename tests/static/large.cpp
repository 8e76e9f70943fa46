// SPDX-License-Identifier: BSL-1.0
//
// The largest tables that a pipeline has made and proved by the compiler, and the first that it
// leaves to the program.
#include <pipe/pipe.hpp>

using namespace pp;

struct Deep : Model<Input<8>, Repeat<32, Linear<8>, GELUTanh>, Linear<8>, MSE> {};

using Largest = Pipeline<Deep, Stages<32>, MicroBatches<128>, VMin>;
static_assert(Largest::compiled::by_compiler && Largest::plan.bubble < 0.5);

static_assert(schedules::fits_a_constant<ZeroBubbleH1>(16, 256) &&
              !schedules::fits_a_constant<ZeroBubbleH1>(16, 257));
static_assert(schedules::fits_a_constant<ZeroBubble2P>(8, 32) &&
              !schedules::fits_a_constant<ZeroBubble2P>(8, 33));
static_assert(!Pipeline<Deep, Stages<16>, MicroBatches<257>, ZeroBubbleH1>::compiled::by_compiler);
