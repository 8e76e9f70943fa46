// SPDX-License-Identifier: BSL-1.0
//
// The model and its trainers.
#pragma once

#include <pipe/pipe.hpp>
#ifdef EXAMPLE_USES_MPI
#include <pipe/mpi.hpp>
#endif
#ifdef EXAMPLE_USES_TCP
#include <pipe/tcp.hpp>
#endif

#include "command.hpp"

// [model]
using Block = pp::Seq<pp::Residual<pp::LayerNorm, pp::Attention<3>>,
                      pp::Residual<pp::LayerNorm, pp::Linear<384>, pp::GELUTanh, pp::Linear<96>>>;

struct GPT : pp::Model<pp::Tokens<256, 128>,  // every byte is a token; a window of 128
                       pp::Embedding<96>, pp::Positions, pp::Repeat<8, Block>, pp::LayerNorm,
                       pp::Linear<256>, pp::CrossEntropy> {};
// [/model]

// [partition]
#ifndef PIPE_GPT_PROFILE
#define PIPE_GPT_PROFILE "gpt_profile.hpp"
#endif
#if __has_include(PIPE_GPT_PROFILE)  // written by `gpt --profile FILE`
#include PIPE_GPT_PROFILE
inline constexpr bool profiled = true;
using Partition = pp::ByProfile<gpt_profile>;
#else
inline constexpr bool profiled = false;
using Partition = pp::ByCost;
#endif
// [/partition]

// [transport]
#if defined EXAMPLE_USES_MPI  // gpt.mpi, which mpirun starts
using Transport = pp::Mpi;
#elif defined EXAMPLE_USES_TCP  // gpt.tcp, which pipe-run starts
using Transport = pp::Tcp;
#else
using Transport = pp::InProcess;
#endif
// [/transport]

/// A whole step learns from 8 x 2 windows. The backend is what --device chooses.
template <class Schedule, class Backend = pp::Host>
using Trainer = pp::Pipeline<GPT, pp::Stages<4>, Partition, pp::MicroBatches<8>,
                             pp::MicroBatchSize<2>, Schedule, pp::AdamW, Backend, Transport>;
