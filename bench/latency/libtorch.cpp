// SPDX-License-Identifier: BSL-1.0
//
// The same by PyTorch's C++ interface: see bench/latency.py, which compiles this file with the
// headers of an installed PyTorch. Argument: calls of each.
#include <torch/torch.h>

#include <cstdlib>
#include <vector>

#include "times.hpp"

int main(int count, char** arguments) {
  int const calls = count > 1 ? std::atoi(arguments[1]) : 1000;
  at::set_num_threads(1);
  torch::nn::Sequential net(torch::nn::Linear(latency::inputs, 64), torch::nn::Tanh(),
                            torch::nn::Linear(64, 64), torch::nn::Tanh(),
                            torch::nn::Linear(64, latency::outputs));
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));
  std::vector<torch::Tensor> x, y;
  for (int i = 0; i < latency::samples; ++i) {
    x.push_back(torch::empty({1, latency::inputs}));
    y.push_back(torch::empty({1, latency::outputs}));
    for (int k = 0; k < latency::inputs; ++k) x.back()[0][k] = latency::number(i, k);
    for (int k = 0; k < latency::outputs; ++k) y.back()[0][k] = latency::number(k, i);
  }
  float sum = 0;
  latency::print("forward", calls, [&](int i) {
    c10::InferenceMode const guard;
    sum += net->forward(x[i]).data_ptr<float>()[0];
  });
  latency::print("step", calls, [&](int i) {
    optimizer.zero_grad();
    torch::Tensor const loss = torch::mse_loss(net->forward(x[i]), y[i]);
    loss.backward();
    optimizer.step();
    sum += loss.item<float>();
  });
  return sum == 1e30f;
}
