// SPDX-License-Identifier: BSL-1.0
//
// The whole library but for files: models, options, optimizers, schedules and reports. Needs only
// the standard library. Included separately: readers and writers of files (data/text.hpp,
// metrics/metrics.hpp), because <filesystem> and <fstream> cost a third of a second to compile;
// schedules without a model, <pipe/schedule.hpp>; models from Boost.Hana lists, <pipe/hana.hpp>.
// For the same reason the headers below do not include <cmath>, <algorithm>, <memory>, <functional>
// or <chrono>, and functions of reports and metrics are templates over nothing: a program that does
// not call such a function instantiates no std::string or std::vector code for it.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/base/config.hpp>  // first: reports an unsupported compiler
#include <pipe/base/diagnosis.hpp>

#include <pipe/compiled.hpp>
#include <pipe/loose/balanced_replicas.hpp>
#include <pipe/metrics/accuracy.hpp>
#include <pipe/nn/activation.hpp>
#include <pipe/nn/attention.hpp>
#include <pipe/nn/batch_norm.hpp>
#include <pipe/nn/branches.hpp>
#include <pipe/nn/compose.hpp>
#include <pipe/nn/images/conv.hpp>
#include <pipe/nn/cross_attention.hpp>
#include <pipe/nn/custom.hpp>
#include <pipe/nn/dropout.hpp>
#include <pipe/nn/embedding.hpp>
#include <pipe/nn/further_loss.hpp>
#include <pipe/nn/gate.hpp>
#include <pipe/nn/group.hpp>
#include <pipe/nn/group_norm.hpp>
#include <pipe/nn/images/image_pool.hpp>
#include <pipe/nn/info_nce.hpp>
#include <pipe/nn/initial.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/lora.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/loss_formulas.hpp>
#include <pipe/nn/map.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/nn/named.hpp>
#include <pipe/nn/norm.hpp>
#include <pipe/nn/normalize.hpp>
#include <pipe/nn/images/pad.hpp>
#include <pipe/nn/images/patch_embedding.hpp>
#include <pipe/nn/pool.hpp>
#include <pipe/nn/rectifiers.hpp>
#include <pipe/nn/images/response_norm.hpp>
#include <pipe/nn/reversible.hpp>
#include <pipe/nn/row_loss.hpp>
#include <pipe/nn/soft_cap.hpp>
#include <pipe/nn/softmax.hpp>
#include <pipe/nn/images/upsample.hpp>
#include <pipe/nn/with.hpp>
#include <pipe/optim/adafactor.hpp>
#include <pipe/optim/adagrad.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/adamax.hpp>
#include <pipe/optim/error_feedback.hpp>
#include <pipe/optim/lamb.hpp>
#include <pipe/optim/learning_rate.hpp>
#include <pipe/optim/lion.hpp>
#include <pipe/optim/muon.hpp>
#include <pipe/optim/nadam.hpp>
#include <pipe/optim/rmsprop.hpp>
#include <pipe/optim/sgd.hpp>
#include <pipe/report/explain.hpp>
#include <pipe/report/kernels.hpp>
#include <pipe/report/timeline.hpp>
#include <pipe/schedule/catalog/families.hpp>
#include <pipe/train/evaluate_all.hpp>
#include <pipe/train/pipeline.hpp>
#include <pipe/train/predict.hpp>
#ifdef __CUDACC__
#include <pipe/runtime/cuda/engine.cuh>
#endif
