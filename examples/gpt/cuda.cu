// SPDX-License-Identifier: BSL-1.0
//
// The same program on a GPU, compiled by nvcc: every schedule in one file, since they share their
// kernels.
#include "run.hpp"

template <class... Schedule>
struct compiled_in_for_cuda : compiled_in<Schedule, pp::Cuda>... {};

static compiled_in_for_cuda<pp::OneFOneB, pp::EagerOneFOneB, pp::GPipe, pp::Interleaved<2>,
                            pp::GroupedInterleaved<2>, pp::LoopedBFS<2>, pp::Hanayo<>,
                            pp::ZeroBubbleH1, pp::ZeroBubbleH2, pp::ZeroBubbleV, pp::VHalf,
                            pp::VMin> const schedules;
