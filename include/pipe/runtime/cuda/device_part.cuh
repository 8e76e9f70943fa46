// SPDX-License-Identifier: BSL-1.0
//
// The resources of one device of a trainer: memory that the device's ranks share, in the
// bookkeeping of the first of them, and the upload of their mini-batches.
#pragma once

#include <pipe/backend/cuda/core/run_state.hpp>
#include <pipe/backend/cuda/update/step_outcome.hpp>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/cuda/upload.cuh>

namespace pp::cuda {

/// The resources of one device. Pointers are to device memory.
struct device_part {
  int first_rank = 0;
  batch_upload upload;
  int* streams_of_bits = nullptr;                 // numbers of the streams of random bits
  loss_scaling* scaling = nullptr;                // for FP16
  step_outcome* outcome = nullptr;                // of the last step
  char* run = nullptr;                            // a run_state and the optimizer's coefficients
  char* found = nullptr;                          // result of a search
  event watched_from{true}, watched_until{true};  // events around a watched launch
};

}  // namespace pp::cuda
