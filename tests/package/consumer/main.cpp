// SPDX-License-Identifier: BSL-1.0
#include <pipe/base/static_vector.hpp>

constexpr auto make_list() {
  pp::static_vector<int, 4> list;
  list.push_back(20);
  list.push_back(22);
  return list;
}

int main() { return make_list()[0] + make_list()[1] == 42 ? 0 : 1; }
