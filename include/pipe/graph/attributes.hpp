// SPDX-License-Identifier: BSL-1.0
//
// The attributes of ops: the properties of an op beside its operands and the size of its result.
// Ops and kernel groups hold them as one value. Real numbers are doubles, which a kernel rounds
// once to the type in which it computes: an FP64 kernel has exactly the numbers that a program has
// written.
#pragma once

#include <cstdlib>

#include <pipe/base/shape.hpp>
#include <pipe/graph/axis_map.hpp>
#include <pipe/graph/value_division.hpp>

namespace pp::detail {

/// Of a matrix product: the length of the dot product of each element.
struct contraction_attributes {
  int inner = 0;
  bool is_transposed = false;  // the second operand is the transpose of a parameter
  friend constexpr bool operator==(contraction_attributes const&,
                                   contraction_attributes const&) = default;
};
/// Of a lookup, of a bag, whose result has a row for each `ids` neighbouring ids, and of their
/// gradients.
struct lookup_attributes {
  int vocabulary = 0;    // rows of the table
  int ids = 1;           // for each row of the result
  int padding = -1;      // an id that is left out, as -1 is
  bool is_mean = false;  // of the rows that are not left out, else their sum
  friend constexpr bool operator==(lookup_attributes const&, lookup_attributes const&) = default;
};
/// Of a map.
struct map_attributes {
  bool reads_output = false;  // the derivative is a function of y, not of x
  friend constexpr bool operator==(map_attributes const&, map_attributes const&) = default;
};
/// Of a prelu and its gradients.
struct slope_attributes {
  bool is_shared = false;  // one slope for all columns, else one for each
  friend constexpr bool operator==(slope_attributes const&, slope_attributes const&) = default;
};
/// Of a concatenation: the first `left` columns of the result are the columns of the first operand;
/// left_is_parameter: the first operand is one row, the same for every row of the result.
struct concat_attributes {
  int left = 0;
  bool left_is_parameter = false;
  friend constexpr bool operator==(concat_attributes const&, concat_attributes const&) = default;
};
/// Of a slice: the result is the columns from `first` on of an operand with `columns` columns.
struct slice_attributes {
  int columns = 0, first = 0;
  friend constexpr bool operator==(slice_attributes const&, slice_attributes const&) = default;
};
/// Of a norm and its input gradient.
struct norm_attributes {
  bool has_mean = false;  // LayerNorm; without: RMSNorm
  double epsilon = 0;     // added to the variance, or to the mean of squares
  friend constexpr bool operator==(norm_attributes const&, norm_attributes const&) = default;
};

/// Of the ops of a batch norm.
struct batch_attributes {
  int rows = 0;              // of x, per sample
  double epsilon = 0;        // added to the variance
  bool is_constant = false;  // normalises by the running statistics in training, too
  int samples = 0;           // of a group with common statistics; 0: a group is a micro-batch
  friend constexpr bool operator==(batch_attributes const&, batch_attributes const&) = default;
  /// In a micro-batch of n samples: the samples of a group, and the number of groups.
  constexpr int group_size(int n) const { return samples > 0 ? samples : n; }
  constexpr int groups(int n) const { return samples > 0 ? (n + samples - 1) / samples : 1; }
};

/// Of the ops of a group norm.
struct group_attributes {
  int groups = 1;      // of columns
  double epsilon = 0;  // added to the variance
  friend constexpr bool operator==(group_attributes const&, group_attributes const&) = default;
};
/// Of a local response norm and its gradient: y = x (offset + scale * the mean of squares)^-power,
/// over a window of `size` columns.
struct response_attributes {
  int size = 1;
  double scale = 0, power = 0, offset = 0;
  friend constexpr bool operator==(response_attributes const&,
                                   response_attributes const&) = default;
};

/// The result of a pool: the mean, the first or the last of a sample's rows. A row whose token id
/// is -1 is padding and does not count.
enum class pool_kind : unsigned char { mean, first, last };
/// Of a pool and its gradient.
struct pool_attributes {
  pool_kind which = pool_kind::mean;
  int rows = 0;  // of x, per sample
  friend constexpr bool operator==(pool_attributes const&, pool_attributes const&) = default;
};

/// The result of a resampling from the cells that it reads. largest: the maximum; mean: the sum
/// over the number of cells; padded_mean: the sum over the number of cells in the window, padding
/// included; sum: the weighted sum, which is zero for no cells.
enum class cell_reduction : unsigned char { largest, mean, padded_mean, sum };
/// Of a resampling of the two axes of an image and of its gradient; a sequence is an image one
/// cell wide.
struct resample_attributes {
  cell_reduction reduction = cell_reduction::sum;
  axis_rule rule = axis_rule::window;
  axis_map axis[2]{};

  PIPE_HD constexpr axis_cells rows_of(int row) const { return axis[0].cells_of(rule, row); }
  PIPE_HD constexpr axis_cells columns_of(int column) const {
    return axis[1].cells_of(rule, column);
  }
  /// The divisor of a sum of cells.
  PIPE_HD constexpr int divisor(axis_cells const& rows, axis_cells const& columns) const {
    if (reduction == cell_reduction::mean) return rows.count * columns.count;
    if (reduction == cell_reduction::padded_mean) return rows.divisor * columns.divisor;
    return 1;
  }
  friend constexpr bool operator==(resample_attributes const& a, resample_attributes const& b) {
    return a.reduction == b.reduction && a.rule == b.rule && a.axis[0] == b.axis[0] &&
           a.axis[1] == b.axis[1];
  }
};

/// Of the scores of an attention, as options of Attention set them. By default scores are plain:
/// scale * q k' for all keys, or for the keys up to the query's position.
struct score_attributes {
  int window = 0;          // keys that a query sees, itself included; 0: no limit
  int prefix = 0;          // first positions, which all see each other
  double cap = 0;          // c of c tanh(score / c); 0: none
  bool has_alibi = false;  // scores fall with the distance
  bool is_masked = false;  // by a function of the layer type
  /// Whether scores have no rule but the scale and the causal limit of the keys.
  constexpr bool is_plain() const { return window == 0 && cap == 0 && !has_alibi && !is_masked; }
  friend constexpr bool operator==(score_attributes const&, score_attributes const&) = default;
};

/// Of attention. `keys`: in cross-attention the number of rows of keys and values, which are a
/// second operand; 0 in self-attention, where keys and values are further columns of the queries'
/// operand.
struct attention_attributes {
  int heads = 0, kv_heads = 0, keys = 0;
  bool causal = false;
  score_attributes scores{};
  /// Whether queries, keys and values are columns of one operand.
  constexpr bool is_fused() const { return keys == 0; }
  friend constexpr bool operator==(attention_attributes const&,
                                   attention_attributes const&) = default;
};

/// The term of a row in a cross entropy, with p the probability of the row's label: -log p; -log p
/// times the weight of the label's class; or a formula of log p. Weights and formula come from the
/// layer type.
enum class row_term : unsigned char { log_probability, weighted_by_class, formula };
/// Of a cross entropy, and of the statistics of its rows where planes divide the logits: the
/// maximum, the sum of e^x, the logit of the label, and the sum of the logits, times class weights
/// if there are any, of the columns of one plane. The loss reads the statistics of all planes as
/// its last target.
struct cross_entropy_attributes {
  double smoothing = 0;  // of labels: see LabelSmoothing
  double z_loss = 0;     // factor of the squared log of the softmax denominator: see ZLoss
  row_term term = row_term::log_probability;
  // Of divided logits: the columns of all planes without padding, and the columns of each plane.
  int vocabulary = 0, part = 0;
  friend constexpr bool operator==(cross_entropy_attributes const&,
                                   cross_entropy_attributes const&) = default;
};

/// One axis of a convolution from `in` to `out` positions: out[i] is a sum over k < kernel of
/// in[i * stride - padding + k * dilation], where positions outside are zeros.
struct convolution_axis {
  int in = 1, out = 1, kernel = 1, stride = 1, padding = 0, dilation = 1;
  /// The length of a window: positions from the first to the last that it reads, both included.
  constexpr int reach() const { return dilation * (kernel - 1) + 1; }
  friend constexpr bool operator==(convolution_axis const&, convolution_axis const&) = default;
};
/// Of a convolution and its gradients, from x[H, W, channels] to y[Y, X, filters]: the channels and
/// the filters are divided among `groups`, and a filter reads the channels of its group.
struct convolution_attributes {
  convolution_axis vertical{}, horizontal{};
  int channels = 0, filters = 0, groups = 1;
  /// Positions of the kernel, and products that make one element of y.
  constexpr int taps() const { return vertical.kernel * horizontal.kernel; }
  constexpr int inner() const { return taps() * (channels / groups); }
  /// Pixels of x and of y.
  constexpr int in_rows() const { return vertical.in * horizontal.in; }
  constexpr int out_rows() const { return vertical.out * horizontal.out; }
  /// Whether each filter reads the one channel of its number.
  constexpr bool is_depthwise() const { return groups == channels && groups == filters; }
  friend constexpr bool operator==(convolution_attributes const&,
                                   convolution_attributes const&) = default;
};

/// Of an exchange: an all-gather (divided to whole or replicated), a reduce-scatter (partial to
/// divided), an all-reduce (partial to whole), the own part of a whole value, or no work at all
/// (whole to replicated).
struct exchange_attributes {
  division_type from = division_type::whole, to = division_type::whole;
  int rows = 0, columns = 0;  // of the operand
  blocks of{};                // of the divided one of operand and result
  /// The attributes of the gradient of an exchange whose result has these rows and columns.
  constexpr exchange_attributes of_gradient(int result_rows, int result_columns) const {
    return {dual(to), dual(from), result_rows, result_columns, of};
  }
  friend constexpr bool operator==(exchange_attributes const&,
                                   exchange_attributes const&) = default;
};

/// Of a user-defined op and its gradients.
struct custom_attributes {
  sample_shape form{};  // of one sample of x
  long flops = 0;       // per sample, of each of its functions
  /// Whether threads may divide the samples of a forward and of an input gradient.
  bool samples_are_independent = false;
  friend constexpr bool operator==(custom_attributes const&, custom_attributes const&) = default;
};

/// The kinds of attributes, one for each struct above.
enum class attribute_kind : unsigned char {
  none,
  contraction,
  lookup,
  map,
  slope,
  concat,
  slice,
  norm,
  batch,
  group,
  response,
  pool,
  resample,
  attention,
  cross_entropy,
  custom,
  convolution,
  exchange
};

/// Stops a program that reads attributes of another kind than the op has. The function is not
/// constexpr, so a constant evaluation that does so stops too, at this name.
[[noreturn]] inline void op_has_other_attributes() { std::abort(); }

/// The attributes of one op, a tagged union: none, or one of the structs above. The row of the op's
/// kind in graph/op_traits.hpp says which.
class attributes {
  using is = attribute_kind;

 public:
  constexpr attributes() : as_none{} {}
  constexpr attributes(contraction_attributes const& a)
      : kind_(is::contraction), as_contraction(a) {}
  constexpr attributes(lookup_attributes const& a) : kind_(is::lookup), as_lookup(a) {}
  constexpr attributes(map_attributes const& a) : kind_(is::map), as_map(a) {}
  constexpr attributes(slope_attributes const& a) : kind_(is::slope), as_slope(a) {}
  constexpr attributes(concat_attributes const& a) : kind_(is::concat), as_concat(a) {}
  constexpr attributes(slice_attributes const& a) : kind_(is::slice), as_slice(a) {}
  constexpr attributes(norm_attributes const& a) : kind_(is::norm), as_norm(a) {}
  constexpr attributes(batch_attributes const& a) : kind_(is::batch), as_batch(a) {}
  constexpr attributes(group_attributes const& a) : kind_(is::group), as_group(a) {}
  constexpr attributes(response_attributes const& a) : kind_(is::response), as_response(a) {}
  constexpr attributes(pool_attributes const& a) : kind_(is::pool), as_pool(a) {}
  constexpr attributes(resample_attributes const& a) : kind_(is::resample), as_resample(a) {}
  constexpr attributes(attention_attributes const& a) : kind_(is::attention), as_attention(a) {}
  constexpr attributes(cross_entropy_attributes const& a)
      : kind_(is::cross_entropy), as_cross_entropy(a) {}
  constexpr attributes(convolution_attributes const& a)
      : kind_(is::convolution), as_convolution(a) {}
  constexpr attributes(exchange_attributes const& a) : kind_(is::exchange), as_exchange(a) {}
  constexpr attributes(custom_attributes const& a) : kind_(is::custom), as_custom(a) {}

  constexpr attribute_kind kind() const { return kind_; }

  /// The attributes as the struct of the function's name. needs: kind() is that kind; checked
  constexpr contraction_attributes const& contraction() const {
    return needs(is::contraction), as_contraction;
  }
  constexpr lookup_attributes const& lookup() const { return needs(is::lookup), as_lookup; }
  constexpr map_attributes const& map() const { return needs(is::map), as_map; }
  constexpr slope_attributes const& slope() const { return needs(is::slope), as_slope; }
  constexpr concat_attributes const& concat() const { return needs(is::concat), as_concat; }
  constexpr slice_attributes const& slice() const { return needs(is::slice), as_slice; }
  constexpr norm_attributes const& norm() const { return needs(is::norm), as_norm; }
  constexpr batch_attributes const& batch() const { return needs(is::batch), as_batch; }
  constexpr group_attributes const& group() const { return needs(is::group), as_group; }
  constexpr response_attributes const& response() const { return needs(is::response), as_response; }
  constexpr pool_attributes const& pool() const { return needs(is::pool), as_pool; }
  constexpr resample_attributes const& resample() const { return needs(is::resample), as_resample; }
  constexpr attention_attributes const& attention() const {
    return needs(is::attention), as_attention;
  }
  constexpr cross_entropy_attributes const& cross_entropy() const {
    return needs(is::cross_entropy), as_cross_entropy;
  }
  constexpr convolution_attributes const& convolution() const {
    return needs(is::convolution), as_convolution;
  }
  constexpr exchange_attributes const& exchange() const { return needs(is::exchange), as_exchange; }
  constexpr custom_attributes const& custom() const { return needs(is::custom), as_custom; }

  /// A hash. law: equal attributes have equal hashes
  constexpr long hash() const {
    switch (kind_) {
      case is::none: return 0;
      case is::contraction:
        return as_contraction.inner + (long(as_contraction.is_transposed) << 32);
      case is::lookup: return as_lookup.vocabulary + (long(as_lookup.ids - 1) << 32);
      case is::map: return as_map.reads_output;
      case is::slope: return as_slope.is_shared;
      case is::concat: return as_concat.left;
      case is::slice: return as_slice.columns + (long(as_slice.first) << 32);
      case is::norm: return as_norm.has_mean;
      case is::batch:
        return as_batch.rows + (long(as_batch.samples * 2 + as_batch.is_constant) << 32);
      case is::group: return as_group.groups;
      case is::response: return as_response.size;
      case is::pool: return as_pool.rows + (long(as_pool.which) << 32);
      case is::resample: return as_resample.axis[0].in + (long(as_resample.axis[0].out) << 32);
      case is::attention: return as_attention.heads + (long(as_attention.keys) << 32);
      case is::cross_entropy: return long(as_cross_entropy.term);
      case is::custom: return as_custom.flops;
      case is::exchange: return long(as_exchange.to) + (long(as_exchange.of.count) << 32);
      case is::convolution: return as_convolution.inner() + (long(as_convolution.in_rows()) << 32);
    }
    return 0;
  }

  friend constexpr bool operator==(attributes const& a, attributes const& b) {
    if (a.kind_ != b.kind_) return false;
    switch (a.kind_) {
      case is::none: return true;
      case is::contraction: return a.as_contraction == b.as_contraction;
      case is::lookup: return a.as_lookup == b.as_lookup;
      case is::map: return a.as_map == b.as_map;
      case is::slope: return a.as_slope == b.as_slope;
      case is::concat: return a.as_concat == b.as_concat;
      case is::slice: return a.as_slice == b.as_slice;
      case is::norm: return a.as_norm == b.as_norm;
      case is::batch: return a.as_batch == b.as_batch;
      case is::group: return a.as_group == b.as_group;
      case is::response: return a.as_response == b.as_response;
      case is::pool: return a.as_pool == b.as_pool;
      case is::resample: return a.as_resample == b.as_resample;
      case is::attention: return a.as_attention == b.as_attention;
      case is::cross_entropy: return a.as_cross_entropy == b.as_cross_entropy;
      case is::custom: return a.as_custom == b.as_custom;
      case is::exchange: return a.as_exchange == b.as_exchange;
      case is::convolution: return a.as_convolution == b.as_convolution;
    }
    return false;
  }

 private:
  /// Stops if the attributes are of another kind: see op_has_other_attributes.
  constexpr void needs(attribute_kind kind) const {
    if (kind_ != kind) op_has_other_attributes();
  }

  struct nothing {};
  attribute_kind kind_ = is::none;
  union {
    nothing as_none;
    contraction_attributes as_contraction;
    lookup_attributes as_lookup;
    map_attributes as_map;
    slope_attributes as_slope;
    concat_attributes as_concat;
    slice_attributes as_slice;
    norm_attributes as_norm;
    batch_attributes as_batch;
    group_attributes as_group;
    response_attributes as_response;
    pool_attributes as_pool;
    resample_attributes as_resample;
    attention_attributes as_attention;
    cross_entropy_attributes as_cross_entropy;
    custom_attributes as_custom;
    convolution_attributes as_convolution;
    exchange_attributes as_exchange;
  };
};

}  // namespace pp::detail
