// SPDX-License-Identifier: BSL-1.0
//
// The attention kernels on every instruction set against a naive softmax in double: the forward
// values, the gradients (which in double agree with central differences too), odd shapes, slices of
// one fused matrix, shared key heads, rotated queries and keys, padding; and the law that a
// sample's bits do not depend on its micro-batch.
#include <cmath>

#include "catch.hpp"

#include "attention_reference.hpp"

namespace {

using namespace pp::host;
using namespace attention_reference;

template <class T>
void check_shape(attention_shape const& shape, bool rotated = false, int padding = 0) {
  run<T> first(shape, rotated, padding);
  reference const wanted = naive(first);
  double const tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
  on_every_isa([&](auto kernels) {
    CAPTURE(kernels.name, shape.samples, shape.queries, shape.keys, shape.heads, shape.kv_heads,
            shape.head_size, shape.causal, rotated, padding);
    run<T> got(shape, rotated, padding);
    got.forward(kernels);
    CHECK(distance(got.out, wanted.out) < tolerance);
    CHECK(distance(got.lse, wanted.lse) < tolerance);
    got.backward(kernels);
    CHECK(distance(got.dq, wanted.dq) < tolerance);
    CHECK(distance(got.dk, wanted.dk) < tolerance);
    CHECK(distance(got.dv, wanted.dv) < tolerance);
  });
}

}  // namespace

TEMPLATE_TEST_CASE("attention agrees with its definition", "", float, double) {
  for (bool causal : {false, true}) {
    for (extent positions : {1, 2, 5, 16, 31, 33, 64, 127, 128, 129, 150, 300})
      for (extent d : {1, 3, 16, 24, 32})
        check_shape<TestType>({1, positions, positions, 1, 1, d, causal});
    for (extent d : {64, 100, 256}) check_shape<TestType>({1, 40, 40, 2, 2, d, causal});
    check_shape<TestType>({3, 20, 20, 4, 2, 8, causal});  // two query heads share a key head
    check_shape<TestType>(
        {2, 35, 140, 3, 1, 5, causal});  // more keys than queries, one shared key head
    check_shape<TestType>({1, 3, 290, 2, 2, 16, causal});
  }
  check_shape<TestType>({2, 150, 20, 2, 1, 16, false});  // more queries than keys
}

TEMPLATE_TEST_CASE("attention rotates queries and keys by their positions", "", float, double) {
  for (bool causal : {false, true}) {
    for (extent positions : {1, 5, 33, 150})
      for (extent d : {2, 6, 16, 34, 64})
        check_shape<TestType>({2, positions, positions, 2, 1, d, causal}, true);
    check_shape<TestType>({1, 20, 150, 2, 2, 8, causal}, true);
  }
}

TEMPLATE_TEST_CASE("nobody attends to padding", "", float, double) {
  for (bool causal : {false, true})
    for (bool rotated : {false, true}) {
      check_shape<TestType>({4, 9, 9, 2, 1, 6, causal}, rotated,
                            3);  // the last sample is all padding
      check_shape<TestType>({3, 40, 40, 2, 2, 8, causal}, rotated, 7);
      check_shape<TestType>({3, 300, 300, 1, 1, 16, causal}, rotated, 100);
      check_shape<TestType>({2, 30, 270, 4, 2, 10, causal}, rotated, 141);
    }
  check_shape<TestType>({3, 150, 20, 2, 1, 16, false}, false, 10);
}

TEMPLATE_TEST_CASE("attention shapes its scores and hides what a mask hides", "", float, double) {
  using rules = pp::detail::score_attributes;
  auto const check = [](attention_shape shape, rules const& scores, int padding = 0) {
    shape.scores = scores;
    if (scores.is_masked) shape.mask = &pp::detail::mask_row<Checks>;
    check_shape<TestType>(shape, shape.head_size % 2 == 0, padding);
  };
  for (extent positions : {5, 33, 300}) {
    extent const heads = positions < 300 ? 4 : 2, samples = heads / 2;  // the definition is slow
    attention_shape const all{samples, positions, positions, heads, heads / 2, 6, false},
        causal{samples, positions, positions, heads, heads / 2, 6, true},
        odd{1, positions, positions, 2, 1, 5, true};
    for (int window : {1, 2, 40, 129, 500}) check(causal, {.window = window});
    for (int prefix : {1, 3, 33, 140, 300}) check(causal, {.prefix = prefix}, 2);
    check(causal, {.has_alibi = true});
    check(all, {.has_alibi = true});
    check(odd, {.cap = 0.5f});
    check(all, {.cap = 2});
    check(causal, {.is_masked = true});
    check(all, {.is_masked = true});
    check(causal, {.window = 50, .cap = 1, .has_alibi = true, .is_masked = true}, 3);
    check(odd, {.prefix = 7, .cap = 1, .has_alibi = true, .is_masked = true}, 4);
  }
  check({2, 35, 290, 4, 1, 8, true}, {.window = 100, .has_alibi = true});
  check({2, 35, 290, 4, 1, 8, false}, {.cap = 3, .is_masked = true}, 50);
}

TEST_CASE("padding is trailing: an id of -1 before others is a key") {
  attention_shape const shape{1, 5, 5, 1, 1, 4, false};
  run<float> plain(shape), padded(shape, false, 1);
  padded.ids[2] = -1;
  plain.forward(portable_kernels{});
  padded.forward(portable_kernels{});
  CHECK(padded.out == plain.out);
}

TEST_CASE("attention leaves out the gradients that nobody asks for") {
  attention_shape const shape{2, 5, 7, 2, 1, 6, false};
  on_every_isa([&](auto kernels) {
    run<float> all(shape), queries(shape), keys(shape);
    for (run<float>* r : {&all, &queries, &keys}) r->forward(kernels);
    all.backward(kernels);
    queries.backward(kernels, true, false);
    keys.backward(kernels, false, true);
    CHECK(queries.dq == all.dq);
    CHECK(keys.dk == all.dk);
    CHECK(keys.dv == all.dv);
    CHECK(keys.dq == exact<float>(extent(keys.dq.count)));
    CHECK(queries.dk == exact<float>(extent(keys.dk.count)));
  });
}

TEST_CASE("attention gradients agree with central differences") {
  attention_shape const shape{2, 11, 11, 4, 2, 6, true};
  on_every_isa([&](auto kernels) {
    run<double> at(shape);
    at.forward(kernels);
    at.backward(kernels);
    auto loss = [&] {
      run<double> moved(shape);
      for (extent i = 0; i < static_cast<extent>(at.q.count); ++i) moved.q[i] = at.q[i];
      for (extent i = 0; i < static_cast<extent>(at.k.count); ++i)
        moved.k[i] = at.k[i], moved.v[i] = at.v[i];
      moved.forward(kernels);
      double sum = 0;
      for (extent i = 0; i < static_cast<extent>(at.dout.count); ++i)
        sum += moved.out[i] * at.dout[i];
      return sum;
    };
    auto check = [&](exact<double> const& x, exact<double> const& gradient) {
      for (extent i = 0; i < static_cast<extent>(x.count); i += 7) {
        double const saved = x[i], step = 1e-5;
        x[i] = saved + step;
        double const above = loss();
        x[i] = saved - step;
        double const below = loss();
        x[i] = saved;
        CHECK(std::fabs((above - below) / (2 * step) - gradient[i]) < 1e-8);
      }
    };
    check(at.q, at.dq);
    check(at.k, at.dk);
    check(at.v, at.dv);
  });
}

TEST_CASE("attention of a sample has the same bits in every micro-batch") {
  attention_shape const three{3, 50, 50, 2, 1, 24, true}, one{1, 50, 50, 2, 1, 24, true};
  on_every_isa([&](auto kernels) {
    run<float> batch(three);
    batch.forward(kernels);
    batch.backward(kernels);
    for (extent b = 0; b < 3; ++b) {
      run<float> alone(one);
      extent const q = 50 * alone.q_columns, k = 50 * alone.k_columns;
      for (extent i = 0; i < q; ++i)
        alone.q[i] = batch.q[b * q + i], alone.dout[i] = batch.dout[b * q + i];
      for (extent i = 0; i < k; ++i)
        alone.k[i] = batch.k[b * k + i], alone.v[i] = batch.v[b * k + i];
      alone.forward(kernels);
      alone.backward(kernels);
      bool same = true;
      for (extent i = 0; i < q; ++i)
        same = same && alone.out[i] == batch.out[b * q + i] && alone.dq[i] == batch.dq[b * q + i];
      for (extent i = 0; i < k; ++i)
        same = same && alone.dk[i] == batch.dk[b * k + i] && alone.dv[i] == batch.dv[b * k + i];
      CHECK(same);
    }
  });
}

TEST_CASE("attention reads and writes slices of a fused matrix") {
  attention_shape const shape{2, 37, 37, 2, 2, 12, true};
  extent const columns = 24, fused = 72, rows = 74;
  on_every_isa([&](auto kernels) {
    run<float> apart(shape);
    apart.forward(kernels);
    apart.backward(kernels);
    exact<float> qkv(rows * fused), gradient(rows * fused), out(rows * columns), lse(rows * 2);
    for (extent r = 0; r < rows; ++r)
      for (extent c = 0; c < columns; ++c) {
        qkv[r * fused + c] = apart.q[r * columns + c];
        qkv[r * fused + columns + c] = apart.k[r * columns + c];
        qkv[r * fused + 2 * columns + c] = apart.v[r * columns + c];
      }
    attention_operands<float> const with{
        {{qkv.data(), fused}, {qkv.data() + columns, fused}, {qkv.data() + 2 * columns, fused}},
        apart.with.scale};
    attention_slices<float> const d{{gradient.data(), fused},
                                    {gradient.data() + columns, fused},
                                    {gradient.data() + 2 * columns, fused}};
    workspace space(attention_backward_workspace<float>(shape));
    kernels.template attention_forward<float>(
        shape, with, attention_results<float>{{out.data(), columns}, lse.data()}, space.at);
    kernels.template attention_backward<float>(
        shape, with, attention_results<float const>{{out.data(), columns}, lse.data()},
        positions<float const>{apart.dout.data(), columns}, d, space.at);
    bool same = out == apart.out && lse == apart.lse;
    for (extent r = 0; r < rows; ++r)
      for (extent c = 0; c < columns; ++c)
        same = same && gradient[r * fused + c] == apart.dq[r * columns + c] &&
               gradient[r * fused + columns + c] == apart.dk[r * columns + c] &&
               gradient[r * fused + 2 * columns + c] == apart.dv[r * columns + c];
    CHECK(same);
  });
}

TEST_CASE("attention with huge scores stays finite, and NaN stays in its row") {
  attention_shape const shape{1, 20, 20, 1, 1, 4, true};
  on_every_isa([&](auto kernels) {
    run<float> at(shape);
    for (extent i = 0; i < 80; ++i) at.q[i] *= 1e4f;
    at.forward(kernels);
    for (extent i = 0; i < 80; ++i) CHECK(std::isfinite(at.out[i]));
    at.q[5 * 4] = std::nanf("");
    at.forward(kernels);
    for (extent i = 0; i < 80; ++i) CHECK(std::isnan(at.out[i]) == (i / 4 == 5));
  });
}
