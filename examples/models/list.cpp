// SPDX-License-Identifier: BSL-1.0
#include "list.hpp"

std::vector<model>& all_models() {
  static std::vector<model> all;
  return all;
}
