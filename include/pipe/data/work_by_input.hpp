// SPDX-License-Identifier: BSL-1.0
//
// The work of samples of several lengths, by the inputs of token ids that it grows with: an
// encoder's with the rows of one of them, that of an attention to another sequence with both.
#pragma once

#include <cstddef>
#include <span>

#include <pipe/data/length_order.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/schedule/uneven.hpp>

namespace pp::detail {

/// Work by what it grows with: the rows of each input of token ids, and the products of the rows of
/// two, as scores of attention do. Number 0 is samples, as inputs with one row of each. As a load,
/// that of samples in a full micro-batch; as the shares of a chunk, of which those of rows add up
/// to 1, as do those of products.
struct work_by_input {
  double rows[max_inputs + 1]{}, products[max_inputs + 1][max_inputs + 1]{};

  /// Adds a sample to a load. each: samples of the context in a full micro-batch
  void add(std::span<measured_rows const> inputs, std::size_t sample, int each) {
    int const count = 1 + int(inputs.size());
    double of[max_inputs + 1]{1}, context[max_inputs + 1]{1};
    for (int a = 1; a < count; ++a) {
      measured_rows const& in = inputs[std::size_t(a - 1)];
      of[a] = in.rows_of(sample), context[a] = in.context;
    }
    for (int a = 0; a < count; ++a) {
      double const full = each * context[a];
      rows[a] += of[a] / full;
      for (int b = 0; b < count; ++b) products[a][b] += of[a] * of[b] / (full * context[b]);
    }
  }
  /// A load in a chunk with these shares.
  micro_batch_load in(work_by_input const& shares) const {
    micro_batch_load all{0, 0};
    for (int a = 0; a <= max_inputs; ++a) {
      all.rows += shares.rows[a] * rows[a];
      for (int b = 0; b <= max_inputs; ++b) all.squares += shares.products[a][b] * products[a][b];
    }
    return all;
  }
};

}  // namespace pp::detail
