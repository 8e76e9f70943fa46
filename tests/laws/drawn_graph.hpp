// SPDX-License-Identifier: BSL-1.0
//
// Graphs drawn at run time, op by op: whatever comes out is a correct graph that ends in a loss.
#pragma once

#include <vector>

#include "laws/field.hpp"

namespace laws {

/// A random graph of up to eight steps over a few rows of a few columns, from token ids or numbers,
/// and for each op how it reads its main operand.
class drawn_graph {
 public:
  explicit drawn_graph(number seed) : seed_(seed) {
    rows_ = of(1, 2, 4, 8);
    columns_ = of(8, 16, 24, 12);
    if (draw(3) > 0) {
      inputs_[0] = {pp::sample_shape(rows_), true, vocabulary};
      current_ = add(kind::lookup, {pp::detail::space::input, 0}, parameter(vocabulary, columns_),
                     rows_, columns_, pp::detail::lookup_attributes{vocabulary});
    } else {
      inputs_[0] = {pp::sample_shape(rows_, columns_), false};
      current_ = {pp::detail::space::input, 0};
      current_ = product(current_, columns_, columns_);
    }
    for (int i = 0, steps = 1 + draw(8); i < steps; ++i) {
      next_unit();
      step();
    }
    next_unit();
    if (draw(3) == 0) {
      loss(current_, columns_);
    } else {
      int const classes = of(16, 8, 7, 33);
      loss(product(current_, columns_, classes), classes);
    }
    unit_record end{};
    end.first_op = int(ops_.size());
    end.first_value = int(values_.size());
    end.first_parameter = int(parameters_.size());
    units_.push_back(end);
    draw_readings();
  }

  operator pp::detail::graph_view() const {
    return {{ops_.data(), int(ops_.size())},
            {values_.data(), int(values_.size())},
            {parameters_.data(), int(parameters_.size())},
            {units_.data(), int(units_.size()) - 1},
            {inputs_, 1},
            pp::sample_shape(rows_, columns_)};
  }
  pp::detail::operand_reading const* readings() const { return readings_.data(); }

 private:
  using kind = pp::op_kind;
  using op = pp::detail::op;
  using operand = pp::detail::operand;
  using space = pp::detail::space;
  using unit_record = pp::detail::unit_record;
  using attributes = pp::detail::attributes;
  static constexpr int vocabulary = 10;

  int draw(int below) { return int(mixed(seed_ * 40503 + ++drawn_) % number(below)); }
  template <class... T>
  int of(T... choices) {
    int const all[]{choices...};
    return all[draw(int(sizeof...(T)))];
  }
  void next_unit() {
    unit_record u{};
    if (units_.empty()) {
      units_.push_back(u);
      return;
    }
    if (draw(2) == 0) return;
    units_.back().result = current_;
    u.first_op = int(ops_.size());
    u.first_value = int(values_.size());
    u.first_parameter = int(parameters_.size());
    units_.push_back(u);
  }
  short unit() {
    if (units_.empty()) units_.push_back({});
    return short(units_.size() - 1);
  }
  operand parameter(int rows, int columns, bool is_buffer = false) {
    pp::detail::parameter p{};
    p.form = rows > 1 ? pp::sample_shape(rows, columns) : pp::sample_shape(columns);
    p.unit = unit();
    p.is_buffer = is_buffer;
    p.trained = !is_buffer;
    if (is_buffer) p.commit.momentum = 0.5f;
    parameters_.push_back(p);
    return {is_buffer ? space::buffer : space::parameter, int(parameters_.size()) - 1};
  }
  operand value(long elements) {
    values_.push_back({elements, unit()});
    return pp::detail::value_operand(int(values_.size()) - 1);
  }
  operand add(kind k, operand x, operand second, int rows, int columns,
              attributes with = attributes{}) {
    return add(k, {x, second}, rows, columns, with);
  }
  operand add(kind k, std::vector<operand> const& in, int rows, int columns, attributes with) {
    op o{};
    o.kind = k;
    o.unit = unit();
    o.rows = rows;
    o.columns = columns;
    o.attributes = with;
    o.origin = int(ops_.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      o.in[i] = in[i];
      if (in[i].where != space::none) o.ins = short(i + 1);
    }
    o.out[0] = value(long(rows) * columns);
    ops_.push_back(o);
    return o.out[0];
  }
  operand product(operand x, int inner, int columns) {
    operand const y = add(kind::matmul, x, parameter(inner, columns), rows_, columns,
                          pp::detail::contraction_attributes{inner});
    return draw(3) == 0 ? y : add(kind::bias, y, parameter(1, columns), rows_, columns);
  }
  operand map(operand x, int columns) {
    return add(kind::map, x, {}, rows_, columns, pp::detail::map_attributes{});
  }
  operand norm(operand x, int rows, int columns) {
    operand const y = add(kind::norm, {x, parameter(1, columns), parameter(1, columns)}, rows,
                          columns, pp::detail::norm_attributes{true, 0.1});
    ops_.back().out[1] = value(2L * rows);
    return y;
  }
  void step() {
    operand const x = current_;
    switch (draw(18)) {
      case 0: current_ = map(x, columns_); break;
      case 1: current_ = norm(x, rows_, columns_); break;
      case 2: {
        int const wide = of(16, 24, 32, 10);
        operand const h = map(product(x, columns_, wide), wide);
        current_ = add(kind::add, x, product(h, wide, columns_), rows_, columns_);
        break;
      }
      case 3: {
        int const half = of(8, 16, 12);
        operand const h = add(kind::gate, product(x, columns_, 2 * half), {}, rows_, half);
        current_ = product(h, half, columns_);
        break;
      }
      case 4: attention(); break;
      case 5: current_ = add(kind::dropout, x, {space::random, streams_++}, rows_, columns_); break;
      case 6: {
        int const left = of(8, 4, 16), right = of(8, 12, 16);
        operand const a = product(x, columns_, left), b = product(x, columns_, right);
        current_ =
            add(kind::concat, a, b, rows_, left + right, pp::detail::concat_attributes{left});
        columns_ = left + right;
        break;
      }
      case 7:
        current_ = add(kind::transpose, x, {}, columns_, rows_);
        std::swap(rows_, columns_);
        break;
      case 8: current_ = add(kind::multiply, map(x, columns_), x, rows_, columns_); break;
      case 9: {
        operand const s =
            add(kind::row_dot, x, x, rows_, 1, pp::detail::contraction_attributes{columns_});
        current_ = add(kind::row_scale, x, map(s, 1), rows_, columns_);
        break;
      }
      case 10: current_ = add(kind::softmax, x, {}, rows_, columns_); break;
      case 11:
        current_ = add(kind::row_bias, x, parameter(rows_, columns_), rows_, columns_);
        break;
      case 12: {
        int const groups = of(1, 2, 4);
        if (columns_ % groups != 0) break;
        current_ = add(kind::group_norm, {x, parameter(1, columns_), parameter(1, columns_)}, rows_,
                       columns_, pp::detail::group_attributes{groups, 0.1});
        ops_.back().out[1] = value(2L * groups);
        break;
      }
      case 13: {
        pp::detail::batch_attributes const by{rows_, 0.1};
        operand const s =
            add(kind::batch_statistics,
                {x, parameter(1, columns_, true), parameter(1, columns_, true)}, 3, columns_, by);
        current_ = add(kind::batch_norm, {x, s, parameter(1, columns_), parameter(1, columns_)},
                       rows_, columns_, by);
        break;
      }
      case 14:
        current_ = add(kind::prelu, x, parameter(1, columns_), rows_, columns_,
                       pp::detail::slope_attributes{false});
        break;
      case 15: {  // heads as rows
        int const heads = of(2, 4);
        if (columns_ % heads == 0) current_ = norm(x, rows_ * heads, columns_ / heads);
        break;
      }
      case 16: {  // one value that a gate and an attention cut into different runs
        int const heads = of(2, 4, 8), q = 16;
        operand const y = product(x, columns_, 3 * q);
        bool const gate_first = draw(2) == 0;
        operand gated{}, mixed{};
        for (int i = 0; i < 2; ++i)
          if ((i == 0) == gate_first)
            gated = add(kind::gate, y, {}, rows_, 3 * q / 2);
          else
            mixed = attended({y}, heads, q / heads, {heads, heads, 0, true});
        current_ = add(kind::add, product(gated, 3 * q / 2, columns_), product(mixed, q, columns_),
                       rows_, columns_);
        break;
      }
      default: {  // another shape of the same numbers
        if (rows_ % 2 == 0) {
          rows_ /= 2;
          columns_ *= 2;
        } else if (columns_ > 32) {
          current_ = product(x, columns_, 16);
          columns_ = 16;
        }
      }
    }
    if (columns_ > 48) {
      current_ = product(current_, columns_, 16);
      columns_ = 16;
    }
  }
  operand attended(std::vector<operand> const& in, int heads, int size,
                   pp::detail::attention_attributes const& with) {
    operand const y = add(kind::attention, in, rows_, heads * size, with);
    ops_.back().out[1] = value(long(heads) * rows_);
    return y;
  }
  void attention() {
    int const heads = of(2, 4, 8, 6), kv_heads = draw(2) == 0 ? heads : 2, size = 2,
              q = heads * size, k = kv_heads * size;
    bool const is_fused = draw(3) > 0;
    pp::detail::attention_attributes with{heads, kv_heads, 0, draw(2) == 0};
    std::vector<operand> in;
    if (is_fused) {
      in = {product(current_, columns_, q + 2 * k)};
    } else {
      with.causal = false;
      with.keys = rows_;
      in = {product(current_, columns_, q), product(current_, columns_, 2 * k)};
    }
    operand const y = attended(in, heads, size, with);
    current_ = product(y, q, columns_);
  }
  void loss(operand x, int columns) {
    int const which = draw(4);
    operand const label{space::label, 0};
    if (which < 2)
      add(kind::cross_entropy, x, label, rows_, columns,
          pp::detail::cross_entropy_attributes{0.1, 0.1});
    else
      add(which == 2 ? kind::squared_error : kind::row_loss, x, label, rows_, columns);
  }
  /// The two ops of a batch norm read alike.
  void draw_readings() {
    for (op const& o : ops_) {
      auto const how = pp::detail::operand_reading(draw(2) == 0 ? 0 : draw(5));
      readings_.push_back(o.kind == kind::batch_norm ? readings_.back() : how);
    }
  }

  number const seed_;
  number drawn_ = 0;
  int rows_ = 1, columns_ = 1, streams_ = 0;
  operand current_{};
  std::vector<op> ops_;
  std::vector<pp::detail::value> values_;
  std::vector<pp::detail::parameter> parameters_;
  std::vector<unit_record> units_;
  pp::detail::input_record inputs_[1]{};
  std::vector<pp::detail::operand_reading> readings_;
};

}  // namespace laws
