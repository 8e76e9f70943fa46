// SPDX-License-Identifier: BSL-1.0
//
// A program that has its net in another source file.
#include "predictor.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  std::vector<float> const points{-4, -3, -2, -1, 1, 2, 3, 4};
  std::vector<float> on_line;
  for (float const point : points) on_line.push_back(2 * point + 1);
  predictor line;
  for (int turn = 0; turn < 200; ++turn) line.train(points, on_line);
  float const at = line.predict(10);
  std::printf("%g\n", double(at));
  return std::fabs(at - 21) < 0.01f ? 0 : 1;
}
