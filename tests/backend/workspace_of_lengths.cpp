// SPDX-License-Identifier: BSL-1.0
//
// The workspace of a product for any number of rows: the most over a few numbers of rows, at which
// the blocking changes, is the most over all of them.
#include "catch.hpp"

#include <algorithm>
#include <random>

#include <pipe/pipe.hpp>

using namespace pp;

namespace {

detail::group product(op_kind anchor, int rows, int inner, int columns) {
  detail::group g{};
  g.anchor = anchor;
  g.rows = rows;
  g.columns = columns;
  g.attributes = detail::contraction_attributes{inner};
  return g;
}

/// Checks that no number of rows up to `rows` * `samples`, in `parts` parts, needs more. Returns
/// whether fewer rows need more than all.
template <class T, class V = T, int Slices = 0>
bool check(op_kind anchor, int rows, int samples, int inner, int columns, int parts) {
  detail::group const g = product(anchor, rows, inner, columns);
  long const planned = host::workspace_bytes_of_lengths<T, V, Slices>(g, samples, parts);
  long most = 0;
  for (int n = 1; n <= rows * samples; ++n)
    most = std::max(
        most, host::workspace_bytes<T, V, Slices>(product(anchor, n, inner, columns), 1, parts));
  CHECK(planned >= most);
  if (parts == 1) CHECK(planned == most);
  return planned > host::workspace_bytes<T, V, Slices>(g, samples, parts);
}

}  // namespace

TEST_CASE("the workspace of a product is enough for any number of rows") {
  int fewer_need_more = 0;
  std::mt19937 random(1);
  auto const draw = [&](int from, int end) { return from + int(random() % unsigned(end - from)); };
  for (int i = 0; i < 60; ++i)
    for (op_kind const anchor : {op_kind::matmul, op_kind::matmul_weight_gradient}) {
      int const inner = draw(1, i % 3 == 0 ? 3000 : 300),
                columns = draw(1, i % 2 == 0 ? 2500 : 200);
      int const rows = draw(1, 700), samples = draw(1, 5), parts = i % 2 == 0 ? 1 : draw(2, 5);
      fewer_need_more += check<float>(anchor, rows, samples, inner, columns, parts);
      fewer_need_more += check<double>(anchor, rows, samples, inner, columns, parts);
      fewer_need_more += check<float, bf16>(anchor, rows, samples, inner, columns, parts);
      fewer_need_more += check<float, bf16, 1>(anchor, rows, samples, inner, columns, parts);
      fewer_need_more += check<float, float, 3>(anchor, rows, samples, inner, columns, parts);
    }
  CHECK(fewer_need_more > 0);
  for (int const inner :
       {310, 330, 620})  // two panels, whose left factor is copied from some rows on
    for (int const rows : {700, 900, 1000})
      for (int const parts : {1, 2}) {
        check<float>(op_kind::matmul_weight_gradient, rows, 1, inner, 90, parts);
        check<double>(op_kind::matmul_weight_gradient, rows, 1, inner, 45, parts);
      }
  for (int const inner : {264, 520, 700, 1000, 1024})  // copied blocks of the left factor
    for (int const columns : {768, 900, 1024}) {
      check<float>(op_kind::matmul_weight_gradient, 640, 1, inner, columns, 1);
      check<double>(op_kind::matmul_weight_gradient, 640, 1, inner, columns, 1);
    }
}
