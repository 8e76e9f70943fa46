// SPDX-License-Identifier: BSL-1.0
//
// Networks: outputs with the bits of a trainer's forward.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/infer/network.hpp>
#include <pipe/pipe.hpp>
#include <pipe/weights/copy_weights.hpp>

#include "catch.hpp"
#include "laws/data.hpp"

namespace networks {

using namespace pp;

template <class M, class... Options>
using Trained = Pipeline<M, PortableHost, MicroBatches<3>, MicroBatchSize<2>, AdamW, Options...>;

/// The outputs of n samples.
template <class Net, class Data>
std::vector<typename Net::element> outputs_of(Net const& net, Data const& data, long n) {
  typename Net::workspace room;
  std::vector<typename Net::element> all(std::size_t(n * Net::outputs_per_sample));
  net.forward(data.template view<Net>(n), all, room);
  return all;
}

/// A trainer and networks of several sizes give the same bits, before and after training.
template <class M, class Precision = FP32>
void has_the_bits_of_forward() {
  using trainer = Trained<M, Precision>;
  using number = typename trainer::element;
  trainer t({.seed = 5, .optimizer = {.learning_rate = 0.01}});
  laws::sample_batch<trainer> const data(1);
  network<M, 1, Precision, PortableHost> one(5);
  network<M, 4, Precision, PortableHost> four(5);
  for (int round = 0; round < 2; ++round) {
    for (long n : {6, 5, 1}) {
      std::vector<number> expected(std::size_t(n * trainer::outputs_per_sample));
      t.forward(data.view(n), expected);
      CHECK(laws::same_numbers(outputs_of(one, data, n), expected));
      CHECK(laws::same_numbers(outputs_of(four, data, n), expected));
    }
    for (int step = 0; step < 2; ++step) t.step(data.view());
    copy_weights(t, one);
    copy_weights(one, four);
  }
}

}  // namespace networks
