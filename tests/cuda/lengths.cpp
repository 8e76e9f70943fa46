// SPDX-License-Identifier: BSL-1.0
//
// Kernel bodies on samples of several lengths, whose rows lie densely, have the bits of the same
// bodies on samples that are padded; behind the rows that are there, memory is NaN.
#include "catch.hpp"

#include <cstring>
#include <vector>

#include <pipe/nn/dropout.hpp>

#include "cuda/attention_laws.hpp"
#include "cuda/one_group.hpp"

using namespace pp;

namespace {

/// P in a pipeline with Lengths.
template <class P, int Block>
struct of_lengths : P {
  static constexpr int length_block = Block;
  enum { length_most = 2 };  // times as many samples as planned; no kernel but attention reads it
};

/// The lengths of the samples of a micro-batch.
struct axis {
  std::vector<int> lengths;
  int context, samples;
  int planned = samples;  // samples for which memory is planned
};
/// Their list of segments, as executors give it to kernels: on a device, all of it in its memory.
struct segments {
  std::vector<int> first{0}, segment;
  std::vector<detail::segment_list> lists{1};

  explicit segments(axis const& of) {
    for (int const n : of.lengths) {
      segment.insert(segment.end(), std::size_t(n), int(first.size()) - 1);
      first.push_back(first.back() + n);
    }
    detail::segment_list& list = lists[0];
    list.rows = first.back(), list.count = int(of.lengths.size());
    list.planned_rows = of.context * of.planned, list.first_sample = 5;
    list.first = first.data(), list.segment = segment.data();
  }
};

/// An operand of a group: `width` numbers of each row, or in all; of T, float or int. A result is
/// compared. Gradients are 0 in rows of padding, as all gradients are; other values are any.
struct operand {
  enum types { values, floats, ints } type = values;
  long width = 0;
  bool by_row = true, is_result = false, is_gradient = false, is_of_keys = false;
};
constexpr operand rows(long width) { return {operand::values, width}; }
constexpr operand floats(long width) { return {operand::floats, width}; }
constexpr operand gradients(long width) { return {operand::values, width, true, false, true}; }
constexpr operand whole(operand o) { return o.by_row = false, o; }
constexpr operand result(operand o) { return o.is_result = true, o; }
constexpr operand of_keys(operand o) { return o.is_of_keys = true, o; }

using bytes = std::vector<unsigned char>;

/// Memory of an operand in a padded micro-batch and in a dense one.
template <class T>
struct both {
  bytes padded, dense;
  operand what;
  std::size_t size;  // bytes of a row

  both(operand o, axis const& of, unsigned seed)
      : what(o), size(std::size_t(o.width) * (o.type == operand::values ? sizeof(T) : 4)) {
    std::size_t const all = size * std::size_t(o.by_row ? of.context * of.samples : 1);
    padded.assign(all, 0xff), dense = padded;
    if (o.is_result && o.by_row) return;
    auto const fill = [&](bytes& to, std::size_t at) {
      for (std::size_t i = 0; i < size; i += o.type == operand::values ? sizeof(T) : 4) {
        seed = seed * 1664525u + 1013904223u;
        float const x = float(seed >> 8) / float(1 << 23) - 1.0f;
        T const v = T(x);
        int const id = int(seed >> 8) % 11;
        if (o.type == operand::values) std::memcpy(to.data() + at + i, &v, sizeof v);
        if (o.type == operand::floats) std::memcpy(to.data() + at + i, &x, sizeof x);
        if (o.type == operand::ints) std::memcpy(to.data() + at + i, &id, sizeof id);
      }
    };
    if (!o.by_row) {
      fill(padded, 0), dense = padded;
      return;
    }
    std::size_t to = 0;
    for (int s = 0; s < of.samples; ++s)
      for (int t = 0; t < of.context; ++t) {
        std::size_t const at = std::size_t(s * of.context + t) * size;
        if (s < int(of.lengths.size()) && t < of.lengths[std::size_t(s)]) {
          fill(padded, at);
          std::memcpy(dense.data() + to, padded.data() + at, size);
          to += size;
        } else if (o.is_gradient) {
          std::memset(padded.data() + at, 0, size);
        } else if (o.type != operand::ints) {  // ids of padding are -1
          fill(padded, at);
        }
      }
  }
  /// Whether all rows that are there, or all numbers, are equal.
  bool is_equal(axis const& of) const {
    if (!what.by_row) return padded == dense;
    std::size_t at = 0;
    for (std::size_t s = 0; s < of.lengths.size(); ++s)
      for (int t = 0; t < of.lengths[s]; ++t, at += size)
        if (std::memcmp(padded.data() + (s * std::size_t(of.context) + std::size_t(t)) * size,
                        dense.data() + at, size) != 0)
          return false;
    return true;
  }
};

/// Runs kernels on a padded micro-batch and on a dense one: the results are the same. If both are
/// the kernels of Lengths, the padded micro-batch may have more samples than planned.
template <class T, class Padded, class Dense>
void check(Padded padded, Dense dense, std::vector<operand> const& operands, axis const& rows,
           axis const& keys, bool accumulate = false) {
  axis longest = rows;
  longest.lengths.assign(std::size_t(rows.samples), rows.context);
  segments const of_rows(rows), of_keys(keys), all(longest);
  std::vector<both<T>> memory;
  for (operand const& o : operands)
    memory.emplace_back(o, o.is_of_keys ? keys : rows, unsigned(memory.size()) + 3);
  std::vector<cuda::run_state> run(1);
  run[0].seed = 9, run[0].step = 4, run[0].loss_scale = 0.25f;
  std::vector<double> losses[2];
  for (auto& l : losses) l.assign(std::size_t(rows.context) * std::size_t(rows.samples), 0.0);
  for (bool const is_dense : {false, true}) {
    cuda::arguments a;
    for (std::size_t i = 0; i < memory.size(); ++i)
      a.operand[i] = (is_dense ? memory[i].dense : memory[i].padded).data();
    std::vector<double> workspace(
        std::size_t(is_dense ? cuda::workspace_of(dense) : cuda::workspace_of(padded)) / 8 + 1);
    std::memset(workspace.data(), 0xff, workspace.size() * 8);
    a.workspace = workspace.data(), a.run = run.data(), a.loss = losses[is_dense].data();
    a.accumulate = accumulate, a.training = true;
    a.first_sample = 5, a.valid_samples = int(rows.lengths.size());
    if (is_dense)
      a.segments = of_rows.lists.data(), a.key_segments = of_keys.lists.data();
    else if (std::is_same_v<Padded, Dense>)
      a.segments = all.lists.data();
    is_dense ? on_host::run_bodies(dense, a) : on_host::run_bodies(padded, a);
  }
  for (std::size_t i = 0; i < memory.size(); ++i) {
    INFO("operand " << i);
    if (operands[i].is_result) CHECK(memory[i].is_equal(operands[i].is_of_keys ? keys : rows));
  }
  CHECK(losses[0] == losses[1]);
}
/// The kernels of group 0 of P.
template <class P, int Block>
void check_group(std::vector<operand> const& operands, axis const& rows, bool accumulate = false) {
  check<typename P::element>(cuda::lowered<P, 0>{}, cuda::lowered<of_lengths<P, Block>, 0>{},
                             operands, rows, rows, accumulate);
}

/// The same of five samples that have room for the rows of four.
template <class P, int Block>
void check_packed(std::vector<operand> const& operands, std::vector<int> const& lengths) {
  axis const rows{lengths, P::group_at(0).rows, 5, 4};
  using of = of_lengths<P, Block>;
  check<typename P::element>(cuda::lowered<of, 0>{}, cuda::lowered<of, 0>{}, operands, rows, rows);
}

/// A group of rows with its operands in order: in[0], in[1] ..., out[0], out[1] ...
template <op_kind Kind, int Rows, int Columns, int Ins, int Outs>
struct plain {
  static constexpr detail::group make() {
    detail::group g;
    g.anchor = Kind, g.rows = Rows, g.columns = Columns;
    for (signed char i = 0; i < Ins; ++i) g.in[i] = i;
    for (signed char i = 0; i < Outs; ++i) g.out[i] = static_cast<signed char>(Ins + i);
    g.operands = Ins + Outs;
    if (Kind == op_kind::matmul || Kind == op_kind::matmul_weight_gradient)
      g.attributes = detail::contraction_attributes{40};
    if (Kind == op_kind::norm || Kind == op_kind::norm_gradient)
      g.attributes = detail::norm_attributes{true, 1e-5f};
    if (Kind == op_kind::pool || Kind == op_kind::pool_gradient)
      g.attributes = detail::pool_attributes{detail::pool_kind::mean, Rows}, g.rows = 1;
    if (Kind == op_kind::cross_entropy) g.attributes = detail::cross_entropy_attributes{};
    if (Kind == op_kind::lookup) g.attributes = detail::lookup_attributes{11};
    return g;
  }
};
template <class T, op_kind Kind, int Rows, int Columns, int Ins, int Outs, int Samples = 4>
using group_on = on_host::one_group<T, plain<Kind, Rows, Columns, Ins, Outs>, Samples>;

template <bool IsShared>
struct of_slopes {
  static constexpr detail::group make() {
    detail::group g = plain<op_kind::prelu_parameter_gradient, 96, 6, 2, 1>::make();
    g.attributes = detail::slope_attributes{IsShared};
    return g;
  }
};
template <bool IsShared>
using slopes = on_host::one_group<float, of_slopes<IsShared>, 4>;

/// A norm of the heads of each position: three rows for each.
struct of_heads {
  static constexpr detail::group make() {
    return plain<op_kind::norm_parameter_gradient, 3 * 96, 20, 3, 1>::make();
  }
};

/// A product, then a bias for each position and a dropout.
template <int Rows, int Columns>
struct placed {
  static constexpr detail::group make() {
    detail::group g = plain<op_kind::matmul, Rows, Columns, 2, 1>::make();
    g.epilogue.push_back({op_kind::row_bias, 0, 3, -1, false});
    g.epilogue.push_back({op_kind::dropout, 0, 4, 5, false});
    g.operands = 6;
    return g;
  }
};

}  // namespace

TEST_CASE("sums over rows of several lengths", "[cuda]") {
  axis const rows_of{{16, 96, 48}, 96, 4};  // the fourth sample is absent
  using bias = group_on<float, op_kind::bias_gradient, 96, 24, 1, 1>;
  check_group<bias, 16>({gradients(24), result(whole(floats(24)))}, rows_of);
  using many = group_on<float, op_kind::bias_gradient, 640, 24, 1, 1>;
  STATIC_REQUIRE(cuda::column_sums_kernel<cuda::bias_source<many, 0>>::chunks > 4);
  check_group<many, 16>({gradients(24), result(whole(floats(24)))}, {{80, 640, 16, 16}, 640, 4},
                        true);
  using positions = group_on<float, op_kind::row_bias_gradient, 96, 10, 1, 1>;
  check_group<positions, 16>({gradients(10), result(whole(floats(96 * 10)))}, rows_of);
  check_group<slopes<true>, 16>({gradients(6), rows(6), result(whole(floats(1)))}, rows_of);
  check_group<slopes<false>, 16>({gradients(6), rows(6), result(whole(floats(6)))}, rows_of);
  // Operands with three rows for each position.
  check_group<on_host::one_group<float, of_heads, 4>, 16>(
      {gradients(3 * 20), rows(3 * 20), floats(3 * 2), result(whole(floats(20)))}, rows_of);
  using norm = group_on<float, op_kind::norm_parameter_gradient, 96, 20, 3, 2>;
  check_group<norm, 16>(
      {gradients(20), rows(20), floats(2), result(whole(floats(20))), result(whole(floats(20)))},
      rows_of, true);
}

TEST_CASE("sums over rows of more samples than planned", "[cuda]") {
  std::vector<int> const lengths{16, 96, 48, 32, 16};
  check_packed<group_on<float, op_kind::bias_gradient, 96, 24, 1, 1>, 16>(
      {gradients(24), result(whole(floats(24)))}, lengths);
  check_packed<group_on<float, op_kind::row_bias_gradient, 96, 10, 1, 1>, 16>(
      {gradients(10), result(whole(floats(96 * 10)))}, lengths);
  check_packed<group_on<float, op_kind::norm_parameter_gradient, 96, 20, 3, 2>, 16>(
      {gradients(20), rows(20), floats(2), result(whole(floats(20))), result(whole(floats(20)))},
      lengths);
}

TEST_CASE("products of rows of several lengths", "[cuda]") {
  axis const rows_of{{32, 96, 64}, 96, 4};
  using placed_rows = on_host::one_group<float, placed<96, 24>, 4, Dropout<1, 4>>;
  check_group<placed_rows, 16>({rows(40), whole(rows(40 * 24)), result(rows(24)),
                                whole(rows(96 * 24)), whole({operand::ints, 1}), result(rows(24))},
                               rows_of);
  axis const packed{{32, 96, 64, 32, 32}, 96, 5, 4};
  auto const weight = [&]<class T, cuda::tile_plan Plan>() {
    std::vector<operand> const operands{rows(40), gradients(24), result(whole(floats(40 * 24)))};
    using P = group_on<T, op_kind::matmul_weight_gradient, 96, 24, 2, 1>;
    using more = group_on<T, op_kind::matmul_weight_gradient, 96, 24, 2, 1, 5>;
    constexpr auto dense = cuda::lower_contraction<of_lengths<P, 32>, 0, Plan>();
    check<T>(cuda::lower_contraction<P, 0, Plan>(), dense, operands, rows_of, rows_of, true);
    check<T>(cuda::lower_contraction<more, 0, Plan>(), dense, operands, packed, packed);
  };
  constexpr auto fp32 = cuda::product_format::fp32, bf = cuda::product_format::bf16;
  constexpr auto in_turn = [](cuda::tile_plan p, int together) { return p.together = together, p; };
  weight.operator()<float, cuda::small_tiles(fp32)>();
  weight.operator()<float, cuda::small_tiles(fp32, 5)>();
  weight.operator()<float, in_turn(cuda::small_tiles(fp32, 3), 4)>();
  weight.operator()<bf16, cuda::small_tiles(bf, 3)>();
}

TEST_CASE("rows of several lengths on their own", "[cuda]") {
  axis const rows_of{{16, 96, 48}, 96, 4};
  using looked_up = group_on<float, op_kind::lookup, 96, 12, 2, 1>;
  check_group<looked_up, 16>({{operand::ints, 1}, whole(rows(11 * 12)), result(rows(12))}, rows_of);
  using norm = group_on<float, op_kind::norm, 96, 20, 3, 2>;
  check_group<norm, 16>(
      {rows(20), whole(rows(20)), whole(rows(20)), result(rows(20)), result(floats(2))}, rows_of);
  using loss = group_on<float, op_kind::cross_entropy, 96, 13, 2, 1>;
  check_group<loss, 16>({rows(13), {operand::ints, 1}, result(rows(13))}, rows_of);
}

TEST_CASE("pools of samples of several lengths", "[cuda]") {
  axis const rows_of{{16, 96, 48, 32}, 96, 4};
  using pool = group_on<float, op_kind::pool, 96, 20, 2, 1>;
  check_group<pool, 16>({rows(20), {operand::ints, 1}, result(whole(rows(4 * 20)))}, rows_of);
  using back = group_on<float, op_kind::pool_gradient, 96, 20, 2, 1>;
  check_group<back, 16>({whole(rows(4 * 20)), {operand::ints, 1}, result(rows(20))}, rows_of);
}

namespace {

constexpr attention_laws::sizes with_samples(attention_laws::sizes s, int more) {
  s.samples += more;
  return s;
}
/// Forward and backward of an attention: the operands of attention_alone. More: samples beside
/// those that are planned.
template <attention_laws::sizes Sizes, int More = 0>
void check_attention(std::vector<int> const& queries, std::vector<int> const& keys) {
  using P = attention_laws::attention_alone<float, with_samples(Sizes, More)>;
  using of = of_lengths<attention_laws::attention_alone<float, Sizes>, 16>;
  constexpr long width = Sizes.heads * Sizes.head_size,
                 key_width = Sizes.key_heads * Sizes.head_size,
                 of_query = Sizes.apart ? width : width + 2 * key_width,
                 of_key = Sizes.apart ? 2 * key_width : 0;
  axis const rows_of{queries, Sizes.queries, Sizes.samples + More, Sizes.samples},
      key_rows{keys, Sizes.keys, Sizes.samples + More, Sizes.samples};
  std::vector<operand> operands{rows(of_query),
                                of_keys(rows(of_key)),
                                whole(floats(Sizes.keys * Sizes.head_size)),
                                of_keys({operand::ints, 1}),
                                result(rows(width)),
                                result(floats(Sizes.heads)),
                                gradients(width),
                                rows(of_query),
                                of_keys(rows(of_key))};
  check<float>(cuda::lowered<P, 0>{}, cuda::lowered<of, 0>{}, operands, rows_of, key_rows);
  operands[4].is_result = operands[5].is_result = false;
  operands[7].is_result = operands[8].is_result = true;
  check<float>(cuda::lowered<P, 1>{}, cuda::lowered<of, 1>{}, operands, rows_of, key_rows);
}

}  // namespace

TEST_CASE("attention of samples of several lengths", "[cuda]") {
  using attention_laws::not_causal, attention_laws::kv_apart, attention_laws::padded,
      attention_laws::turned;
  constexpr attention_laws::sizes s{4, 96, 96, 4, 2, 16};
  check_attention<padded(1, s)>({16, 96, 80}, {16, 96, 80});
  check_attention<padded(1, s), 1>({16, 96, 48, 32, 16}, {16, 96, 48, 32, 16});
  check_attention<padded(1, not_causal(s))>({16, 96, 80, 48}, {16, 96, 80, 48});
  check_attention<padded(1, turned({3, 48, 48, 2, 1, 12}))>({48, 16}, {48, 16});
  check_attention<padded(1, kv_apart(not_causal({3, 48, 80, 2, 2, 8})))>({48, 16, 32},
                                                                         {16, 80, 64});
}
