// SPDX-License-Identifier: BSL-1.0
//
// A net behind an interface of a program's own: what includes this file reads no header of pipe.
#pragma once

// [header]
#include <memory>
#include <span>

class predictor {
 public:
  predictor();
  ~predictor();
  double train(std::span<float const> inputs, std::span<float const> labels);
  float predict(float input);

 private:
  struct network;  // is known to one source file
  std::unique_ptr<network> network_;
};
// [/header]
