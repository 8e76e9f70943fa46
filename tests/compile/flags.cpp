// SPDX-License-Identifier: BSL-1.0
//
// The least program that flags of a compiler could change: see flags.py.
#include <cstdio>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

int main() {
  Pipeline<Net, SGD, PortableHost> trainer;
  float const inputs[] = {1, 2, 3}, labels[] = {1, 2};
  std::printf("%a\n", trainer.step({inputs, labels}).loss);
}
