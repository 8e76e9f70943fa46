// SPDX-License-Identifier: BSL-1.0
//
// Everything that needs no more than the standard library and Boost.Hana.
#pragma once

#include <pipe/nn/activation.hpp>
#include <pipe/nn/attention.hpp>
#include <pipe/nn/compose.hpp>
#include <pipe/nn/embedding.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/nn/norm.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/learning_rate.hpp>
#include <pipe/optim/sgd.hpp>
#include <pipe/schedule.hpp>
#include <pipe/train/pipeline.hpp>
