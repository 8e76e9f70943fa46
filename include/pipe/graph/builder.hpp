// SPDX-License-Identifier: BSL-1.0
//
// The builder, as a layer sees it in `describe`: the current value, named values and parameters.
// After the first fault every function does nothing: one mistake, one message.
#pragma once

#include <string_view>
#include <utility>

#include <pipe/base/static_vector.hpp>
#include <pipe/graph/copies.hpp>
#include <pipe/graph/description_state.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/graph_writer.hpp>
#include <pipe/graph/handle.hpp>
#include <pipe/graph/layer_checks.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/graph/naming.hpp>
#include <pipe/graph/op_functions.hpp>

namespace pp::detail {

/// Runs layer descriptions. Without room the builder counts and checks; with exactly the counted
/// room it stores what layers add. Leaves: known_leaves of the model's leaf types.
template <class Leaves, graph_size Room = graph_size{}, class Observer = no_observer>
class builder : public leaf_finder<std::size_t(leaf_count(Leaves{}))>,
                public graph_writer<Room>,
                public layer_checks,
                public op_functions<builder<Leaves, Room, Observer>> {
 public:
  using builder::graph_writer::keeps;
  using leaves = Leaves;
  constexpr builder(typename builder::directory const& all, handle input, Observer observer = {})
      : builder::leaf_finder(all), current_(input), observer_(std::move(observer)) {
    tied_names_.list(Leaves{});
    further_input(input);
  }

  /// The input of the layer being described; set() makes h the input of the next.
  constexpr handle current() const { return current_; }
  constexpr void set(handle h) { current_ = h; }
  constexpr Observer const& observer() const { return observer_; }
  constexpr parameter_scope& scope() { return scope_; }

  /// Describes the parts of a layer. `alone_is_whole`: a single part is the whole layer, and has no
  /// number in names.
  template <class... L>
  constexpr void all(layers<L...>, bool alone_is_whole = false) {
    std::size_t const outer = siblings_.enter();
    bool const numbered = !(alone_is_whole && sizeof...(L) == 1 && !(brings_name<L>() || ...));
    int i = 0;
    (part<L>(i++, numbered), ...);
    siblings_.leave(outer);
  }
  /// Describes layer L here, as number i of the layer around it. At top level a layer that is not
  /// opened begins a new unit, and the model may be cut before it. An opened layer may have static
  /// functions `enter(builder&)` and `leave(builder&)`, called around each repetition of its parts;
  /// changes that these functions make to scope() hold for the parts only.
  template <class L>
  constexpr void part(int i, bool numbered = true) {
    if (numbered) observer_.part(i);
    if (nested_ > most_nested) report_most(wrong::layers_are_nested_too_deep, most_nested);
    if (ok()) {
      int const outer = leaf_;
      leaf_ = this->template index_of<L>();
      ++nested_;
      if constexpr (opened<L>)
        layers_in<L>();
      else
        closed_layer<L>();
      --nested_;
      leaf_ = outer;
    }
    if (numbered) observer_.end_part();
  }

  /// Lets the model be cut here, inside of a layer in a CutInside. x: the result so far
  constexpr void may_cut(handle x) {
    if (depth_ != 1 || !scope_.cut_inside || !ok()) return;
    this->divide_unit(x);
    position_ = sizes_.units - 1;
  }

  /// Describes the loss. It is part of the last layer's unit: no cut separates them.
  template <class L>
  constexpr void close() {
    if (!ok()) return;
    leaf_ = this->template index_of<L>();
    if constexpr (is_refused<L>)
      refuse<L>();
    else if (needs_input_of_loss<L>(current_))
      L::describe(*this);
    for (named_value const& v : named_)
      if (!v.read) report_unread(v.position, v.leaf, v.value.form);
  }

  /// True, or a fault: the current value is real numbers; needs_ids: token ids.
  constexpr bool needs_numbers() { return layer_checks::needs_numbers(current_); }
  constexpr bool needs_ids() { return layer_checks::needs_ids(current_); }

  // ---- values with names ----

  /// Stores the current value under a name; a fault if a value of this name is unread.
  constexpr void stash(std::string_view name) {
    if (!ok()) return;
    named_value const mine{name, current_, short(position_), short(leaf_), false};
    for (named_value& v : named_)
      if (v.name == name) {
        if (!v.read) report_unread(v.position, v.leaf, v.value.form);
        v = mine;
        return;
      }
    named_.push_back(mine);
  }
  /// The value that was stashed under `name`, which counts as read; a fault if there is none.
  constexpr handle recall(std::string_view name) {
    for (named_value& v : named_)
      if (v.name == name) {
        v.read = true;
        return v.value;
      }
    report_name(wrong::value_is_popped_but_never_stashed);
    return current_;
  }
  /// Whether another value may replace h as the current one: h is stashed or kept, or an input.
  constexpr bool is_kept(handle h) const {
    for (named_value const& v : named_)
      if (v.value.at == h.at) return true;
    return h.at.where != space::value || h.at == kept_;
  }
  /// Names the latest input.
  constexpr void name_input(std::string_view name) {
    for (int i = 0; i + 1 < sizes_.inputs; ++i)
      if (input_names_[i] == name) report_name(wrong::name_is_given_twice);
    if (ok()) input_names_[sizes_.inputs - 1] = name;
  }
  /// Makes the next input the current value. The present current value must be stashed.
  constexpr void further_input(handle input) {
    if (!ok()) return;
    if (!is_kept(current_))
      return report(wrong::value_must_be_stashed_before_another_replaces_it, current_.form);
    if (!needs_fewer_inputs(sizes_.inputs)) return;
    if (input.form.rank == 0) return report(wrong::input_needs_one_to_four_extents);
    if (!needs_positive(input.form) || !needs_room(input.form, most_numbers) ||
        (input.is_ids && !needs_positive(input.vocabulary)))
      return;
    input.at.index = sizes_.inputs;
    if constexpr (keeps)
      graph_.inputs[sizes_.inputs] =
          input_record{input.form, input.is_ids, input.vocabulary, short(leaf_)};
    ++sizes_.inputs;
    current_ = input;
  }
  /// Adds an input that only a loss reads: numbers, or ids if vocabulary > 0. Named as O is.
  template <class O>
  constexpr operand loss_input(sample_shape form, int vocabulary = 0) {
    if (!needs_fewer_inputs(sizes_.inputs)) return operand{};
    int const outer = leaf_;
    leaf_ = this->template index_of<O>();
    if constexpr (keeps)
      graph_.inputs[sizes_.inputs] = {form, vocabulary > 0, vocabulary, short(leaf_), true};
    ++sizes_.inputs;
    name_input(O::name.view());
    leaf_ = outer;
    return operand{space::input, sizes_.inputs - 1};
  }

  // ---- parameters with names ----

  constexpr void begin_name(std::string_view name) {
    observer_.name(name);
    if (!needs_name(name)) return;
    if (!siblings_.add(name)) return report_name(wrong::name_is_given_twice);
    if constexpr (shares) tied_names_.begin(name, sizes_.parameters);
  }
  constexpr void end_name(std::string_view name) {
    if constexpr (shares) tied_names_.end(name);
  }
  /// True, or a fault: so far exactly one layer has that name, and its description is complete.
  constexpr bool needs_named(std::string_view name) {
    wanted_name const& p = tied_names_.of(name);
    if (p.ended != 1 || p.times != 1)
      report_name(wrong::tied_name_must_belong_to_exactly_one_layer_before, sample_shape(1),
                  sample_shape(p.ended));
    return ok();
  }
  /// A parameter that shares the memory of the first parameter of the layer with that name.
  constexpr operand tied(std::string_view name) { return share(tied_names_.of(name).first); }
  /// Describes the layer with that name again, on the same parameters.
  template <class L>
  constexpr void tie(std::string_view name) {
    int const outer = tying_;
    tying_ = tied_names_.of(name).first;
    all(layers<L>{}, true);
    tying_ = outer;
  }

  /// Adds a parameter of rows x columns (a vector has one row). `decays`: weight decay applies, as
  /// for matrices, not for biases and norms.
  constexpr operand parameter(int rows, int columns, initializer initial, bool decays,
                              file_name const& file = file_name{}) {
    return parameter(sample_shape(rows, columns), initial, decays, file);
  }
  /// The same for a shape of 1 to 4 extents.
  constexpr operand parameter(sample_shape form, initializer initial, bool decays,
                              file_name const& file = file_name{}) {
    if constexpr (shares)
      if (tying_ >= 0) {
        shared_extents const of = shared(tying_);
        if (!(of.form == form))
          report(wrong::tied_layer_needs_parameters_of_the_same_shape, of.form, form);
        return ok() ? share(tying_++) : operand{};
      }
    return new_parameter({.form = form,
                          .initial = initial,
                          .trained = scope_.trained,
                          .rate_scale = scope_.rate_scale,
                          .decay_scale = decays ? scope_.decay_scale : 0},
                         file);
  }
  /// Adds a buffer: ops read it like a parameter, and each step writes it by `commit`, except in a
  /// frozen layer.
  constexpr operand buffer(sample_shape form, initializer initial, commit_rule commit,
                           file_name const& file = file_name{}) {
    if constexpr (shares)
      if (tying_ >= 0) return report(wrong::tied_layer_must_have_no_buffers), operand{};
    return new_buffer(form, initial, scope_.trained ? commit : commit_rule{}, file);
  }
  /// Adds the angles of rotary positions. A constant buffer, not a parameter, keeps full precision
  /// where kernels read parameters in 16 bits. A tied layer has angles of its own.
  constexpr operand rotary_table(int rows, int columns, float base) {
    if constexpr (shares)
      if (tying_ >= 0) ++tying_;
    return new_buffer(sample_shape(rows, columns), {distribution::rotary, base}, commit_rule{},
                      {nullptr});
  }

  /// Adds a table of graph/position_tables.hpp as a parameter that is never trained.
  constexpr operand constant_table(int rows, int columns, initializer table) {
    parameter_scope const outer = scope_;
    scope_.trained = false;
    operand const p = parameter(rows, columns, table, false, {nullptr});
    scope_ = outer;
    return p;
  }

  /// Adds the loss, which ends the model: the op's result is the gradient by x.
  constexpr void loss(op_kind kind, handle x, loss_operands const& with = loss_operands{}) {
    if (depth_ > 0) return report(wrong::loss_must_be_the_last_item_of_a_model);
    push(kind, x, x.form, {with.labels(this->labels_)},
         kind == op_kind::cross_entropy ? attributes(with.cross_entropy) : attributes());
    if constexpr (keeps) with.put(graph_.ops[sizes_.ops - 1]);
  }

  /// The graph. needs: everything has been described. law: sizes() == Room
  constexpr graph<Room> finish() {
    graph_.units[Room.units] =
        unit_record{Room.ops, Room.values, Room.parameters, -1, operand{}, sample_shape{}};
    graph_.output = current_.form;
    join_axes(graph_);
    return graph_;
  }

 private:
  friend class op_functions<builder>;
  using builder::graph_writer::sizes_, builder::graph_writer::graph_, builder::graph_writer::unit_;

  template <class L>
  constexpr void layers_in() {
    if (L::times < 1) report(wrong::size_must_be_positive, sample_shape(L::times));
    if constexpr (is_refused<L>) refuse<L>();
    parameter_scope const outer = scope_;
    int const first = sizes_.units;
    bool alike = true;  // whether the copies so far, but for the first, are alike
    for (int i = 0; i < L::times && ok(); ++i) {
      description_state const before = here();
      if constexpr (makes_copies<L>) observer_.part(i);
      if constexpr (requires { L::enter(*this); }) L::enter(*this);
      if constexpr (decorates_one<L>)
        [this]<class Part>(layers<Part>) {
          this->template part<Part>(0, false);
        }(typename L::parts{});
      else
        all(typename L::parts{}, makes_copies<L> || has_name<L>);
      if constexpr (requires { L::leave(*this); }) L::leave(*this);
      if constexpr (makes_copies<L>) observer_.end_part();
      scope_ = outer;
      if constexpr ((describes_alike || keeps) && L::times > 2) {
        bool const leads_on =
            ok() && named_.empty() && joined_from_ < 0 && here().leads_on_from(before);
        alike = leads_on && (alike || i == 1);
        if (describes_alike && leads_on && (!keeps || (alike && i == 2))) {
          repeat(before, L::times - 1 - i);
          break;
        }
      }
    }
    if constexpr (keeps && L::times > 2)
      if (alike) graph_.repetitions.note(first, sizes_.units - first, L::times);
  }
  constexpr description_state here() const {
    return description_state{current_, sizes_, position_, streams_, unit_};
  }
  /// Adds `times` more repetitions, each a copy of the items that were added since `before`.
  constexpr void repeat(description_state const& before, int times) {
    if (long(times) * (sizes_.ops - before.sizes.ops) + sizes_.ops > most_ops)
      return report_most(wrong::model_has_too_many_layers, most_ops);
    operand const result = current_.at;
    current_.at = here().result_after(before, times);
    if (probabilities_ == result) probabilities_ = current_.at;
    add_copies(graph_, sizes_, before.sizes, times);
    position_ += times * (position_ - before.position);
    streams_ += times * (streams_ - before.streams);
    unit_ = short(unit_ + times * (unit_ - before.unit));
  }
  template <class L>
  constexpr void closed_layer() {
    if constexpr (joins_parts<L> && !is_refused<L>)
      if (depth_ == 0 && scope_.cut_inside) return joined_layers<L>();
    if (depth_ == 0) this->begin_unit(leaf_);
    ++depth_;
    if constexpr (is_refused<L>)
      refuse<L>();
    else if constexpr (requires { L::describe(*this); })
      L::describe(*this);
    else
      report(is_input<L> ? wrong::input_must_be_the_first_item_of_a_model
                         : wrong::item_is_not_a_layer);
    if constexpr (requires { L::makes_probabilities; }) probabilities_ = current_.at;
    --depth_;
    if (depth_ == 0) {
      this->end_unit(current_);
      position_ = sizes_.units;
    }
  }

  /// Describes a layer whose parts are units. An op that joins their results is part of the last
  /// unit so far, or of a unit of its own if no part has an op.
  template <class L>
  constexpr void joined_layers() {
    int const outer = joined_from_;
    joined_from_ = sizes_.units;
    L::describe(*this);
    bool const has_units = sizes_.units > joined_from_;
    joined_from_ = outer;
    if (has_units) this->end_with(current_);
    position_ = sizes_.units;
  }

  constexpr operand new_buffer(sample_shape form, initializer initial, commit_rule commit,
                               file_name const& file) {
    operand const at = new_parameter(
        {.form = form, .initial = initial, .trained = false, .is_buffer = true, .commit = commit},
        file);
    return at.where == space::parameter ? operand{space::buffer, at.index} : at;
  }
  constexpr operand new_parameter(detail::parameter const& p, file_name const& file) {
    sample_shape leading = p.form;  // all extents but the last: rows are counted in an int
    --leading.rank;
    if (!needs_room(p.form, most_parameters) || !needs_room(leading, most_numbers))
      return operand{};
    if (file.name != nullptr) observer_.parameter(sizes_.parameters, file);
    return add_parameter(p);
  }
  /// Sets the role of parameter p. The role of a table is final.
  constexpr void is_a(custom::tensor_kind kind, operand p) {
    using enum custom::tensor_kind;
    if constexpr (keeps)
      if (auto& now = graph_.parameters[p.index].kind; now != table) now = kind;
  }
  constexpr shared_extents shared(int parameter) const {
    for (shared_extents const& e : shared_)
      if (e.parameter == parameter) return e;
    return shared_extents{};
  }
  constexpr operand share(int parameter) {
    shared_extents const of = shared(parameter);
    detail::parameter p{};
    p.form = of.form;
    p.tied_to = short(of.owner);
    p.trained = of.trained;
    return add_parameter(p);
  }
  constexpr operand add_parameter(detail::parameter p) {
    p.unit = unit_;
    p.leaf = short(leaf_);
    p.kind = p.rows() > 1 ? custom::tensor_kind::matrix : custom::tensor_kind::vector;
    if constexpr (keeps) graph_.parameters[sizes_.parameters] = p;
    if constexpr (shares)
      if (!p.is_buffer && (tied_names_.open > 0 || p.tied_to >= 0)) {
        if (shared_.size() == shared_.capacity())
          report_most(wrong::tied_layers_have_too_many_parameters, int(shared_.capacity()));
        else
          shared_.push_back({p.form, sizes_.parameters,
                             p.tied_to >= 0 ? p.tied_to : sizes_.parameters, p.trained});
      }
    return operand{space::parameter, sizes_.parameters++};
  }
  /// Adds an op on x and further operands. Returns its result: see result_of.
  constexpr handle push(op_kind kind, handle x, sample_shape form, further_operands in,
                        attributes const& with = attributes{}) {
    if constexpr (!keeps)  // the counting run has already checked
      if (!needs_room(form, most_numbers) || !needs_fewer_ops(sizes_.ops)) return x;
    if (sizes_.units == joined_from_) this->begin_unit(this->leaf_of_unit_);
    operand const out = this->new_value(form.elements());
    if constexpr (keeps) {
      op o{kind, x.axis};
      o.unit = unit_;
      o.leaf = short(leaf_);
      o.in[0] = x.at;
      o.in[1] = in.a;
      o.in[2] = in.b;
      o.in[3] = in.c;
      o.ins = short(1 + in.count());
      o.out[0] = out;
      o.rows = form.rows();
      o.columns = form.columns();
      o.origin = sizes_.ops;
      o.attributes = with;
      graph_.ops[sizes_.ops] = complete(o);
    }
    ++sizes_.ops;
    return result_of(kind, x, out, form);
  }
  constexpr void second_output(long elements) {
    operand const out = this->new_value(elements);
    if constexpr (keeps) graph_.ops[sizes_.ops - 1].out[1] = out;
  }
  /// A new stream of random bits.
  constexpr int new_stream() { return streams_++; }

  static constexpr int tied_count = count_tied(Leaves{});
  static constexpr bool shares = tied_count > 0;
  static constexpr bool describes_alike = !shares && std::is_same_v<Observer, no_observer>;

  handle current_;
  Observer observer_;
  parameter_scope scope_{};
  int nested_ = 0, depth_ = 0, tying_ = -1;
  int joined_from_ = -1;  // units before the layer whose parts are joined
  int streams_ = 0;
  static_vector<named_value, std::size_t(leaf_count(Leaves{}))> named_;  // one per layer type
  sibling_names<std::size_t(leaf_count(Leaves{}))> siblings_;
  std::string_view input_names_[max_inputs]{};
  wanted_names<std::size_t(tied_count)> tied_names_;
  static_vector<shared_extents, std::size_t(shares ? 512 : 0)> shared_;
};

}  // namespace pp::detail
