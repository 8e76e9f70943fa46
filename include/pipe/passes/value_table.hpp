// SPDX-License-Identifier: BSL-1.0
//
// The size of every value of a graph and of its gradients in memory.
#pragma once

#include <initializer_list>

#include <pipe/base/bytes.hpp>
#include <pipe/graph/gradient_graph.hpp>

namespace pp::detail {

/// Bytes per number. element: parameters, gradients and statistics; value: all other values, and
/// the copies of parameters that kernels read.
struct number_widths {
  int element = 4, value = 4;
  /// Whether matrices that are read transposed have transposed copies; else kernels read the
  /// parameters themselves.
  bool has_transposes = true;
  /// Whether parameters that replicas may divide are apart from other parameters: see
  /// lay_out_parameters.
  bool divides = false;
  /// Whether products may read transposed copies in panels: see copy_layout.
  bool has_panels = false;
  /// Whether kernels read copies of parameters in the type of values.
  constexpr bool has_copies() const { return value != element; }
};

/// The layout of a parameter's transposed copy: row-major, or in panels, each as many columns as a
/// tile of the processor's instruction set has, in contiguous memory, one after the other.
enum class copy_layout : unsigned char { none, rows, panels };

/// Whether the transpose of a matrix (rows, columns) is in panels: where as the right factor of a
/// product it does not stay near a core, and is wide enough for several panels. All vectors are
/// whole then.
constexpr bool panels_pay(long rows, long columns, int bytes) {
  constexpr long near_cache = 512 * 1024, vector = 16, wide = 384, deep = 128;
  return rows % vector == 0 && rows >= wide && columns >= deep &&
         rows * columns * bytes >= near_cache;
}

/// The values of a graph and of its gradients, in one numbering: forward values come first.
struct value_table {
  view<int> elements;       // by value: of one sample or, negative, of the micro-batch
  view<bool> is_statistic;  // by value, see describe_values
  int forward = 0;          // the number of forward values
  number_widths widths{};
  int samples = 1;

  constexpr int size() const { return elements.count; }
  constexpr bool is_forward(int v) const { return v < forward; }
  /// Whether the value has the type of parameters.
  ///
  /// law: of the values that backward makes, only statistics that are made again are wide
  constexpr bool is_wide(int v) const { return is_statistic.items[v]; }
  /// The elements of a micro-batch.
  constexpr long batch_elements(int v) const {
    long const n = elements.items[v];
    return n < 0 ? -n : n * samples;
  }
  /// The bytes of a micro-batch, rounded up to the alignment.
  constexpr long bytes(int v) const {
    return align_up(batch_elements(v) * (is_wide(v) ? widths.element : widths.value));
  }
};

/// Lists the elements of each value, of one sample or, negative, of all groups of a micro-batch,
/// and marks statistics and logarithms of sums, which have the type of parameters since 16 bits
/// would lose too much.
///
/// shape: -> elements[values and gradients], is_statistic[values and gradients], initially false
constexpr void describe_values(graph_view const& g, gradient_view const& backward, int* elements,
                               bool* is_statistic, int samples) {
  int n = 0;
  for (value const& v : g.values) elements[n++] = int(v.elements);
  for (value const& v : backward.values) elements[n++] = int(v.elements);
  for (view<op> const& ops : {g.ops, backward.input_ops})
    for (op const& o : ops) {
      if (has<&op_traits::statistics>(o.kind) && o.out[1].where == space::value)
        is_statistic[o.out[1].index] = true;
      if (!has<&op_traits::of_batch>(o.kind)) continue;
      elements[o.out[0].index] *= -o.attributes.batch().groups(samples);
      is_statistic[o.out[0].index] = true;
    }
}

}  // namespace pp::detail
