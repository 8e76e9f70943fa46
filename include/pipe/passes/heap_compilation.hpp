// SPDX-License-Identifier: BSL-1.0
//
// The compiler of models at run time: the passes of model_passes.hpp with their results on the
// heap. For models that are too large for constants, and for tests.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/passes/model_passes.hpp>
#include <pipe/passes/stage_layout.hpp>
#include <pipe/passes/unit_bytes.hpp>

namespace pp::detail {

/// The backward ops of a graph, on the heap.
class heap_gradients {
 public:
  /// Differentiates twice: first to count, then into arrays of the counted lengths. The graph must
  /// outlive the result.
  explicit heap_gradients(graph_view const& g, bool inputs = false) : inputs_(inputs) {
    gradient_sinks counts;
    fill(g, counts);
    gradient_size const n = counts.sizes();
    input_ops_ = heap_array<op>(n.input_ops);
    weight_ops_ = heap_array<op>(n.weight_ops);
    values_ = heap_array<value>(n.values);
    crossings_ = heap_array<crossing>(n.crossings);
    transposed_ = heap_array<unsigned char>(g.parameters.count + 1);
    gradient_sinks sinks{{input_ops_.begin()},
                         {weight_ops_.begin()},
                         {values_.begin()},
                         {crossings_.begin()},
                         transposed_.begin()};
    fill(g, sinks);
    view_ = gradient_view{sinks.input_ops.filled(), sinks.weight_ops.filled(),
                          sinks.values.filled(),    sinks.crossings.filled(),
                          sinks.transposed,         inputs ? g.inputs.count : 0};
  }
  operator gradient_view() const { return view_; }

 private:
  /// One differentiation, with working memory of its own.
  void fill(graph_view const& g, gradient_sinks& out) const {
    heap_array<bool> needed(g.values.count);
    heap_array<operand> gradient(g.values.count), remade(g.values.count);
    differentiate(g, gradient_scratch{needed.begin(), gradient.begin(), remade.begin(), inputs_},
                  out);
  }
  bool inputs_ = false;  // whether inputs get gradients too
  heap_array<op> input_ops_, weight_ops_;
  heap_array<value> values_;
  heap_array<crossing> crossings_;
  heap_array<unsigned char> transposed_;
  gradient_view view_;
};

/// The parameters of a compilation, as the template parameters of `compilation`.
///
/// needs: 1 <= stages <= units of the model, samples >= 1
struct compile_options {
  int stages = 1, samples = 1;
  number_widths widths{};
  bool splits_backward = false;
  recompute_rule recompute{};
  bool recomputes_ahead = false;
  bool input_gradients = false;
};

/// A model compiled at run time: the results of the passes on the heap. The graph must outlive this
/// object.
///
/// law: every list is equal to the same list of the `compilation` with these options
class heap_compilation {
 public:
  /// Runs all passes. cut: see cut_units; a cut with five parameters is first given the model, an
  /// uncut_model
  template <class Cut>
  heap_compilation(graph_view const& g, compile_options const& o, Cut const& cut)
      : graph_(g), gradients_(g, o.input_gradients), backward_(gradients_),
        value_count_(g.values.count + backward_.values.count),
        transposed_(find_transposed(g.parameters, backward_, o.widths, g.parameters.count)),
        training_costs_(find_training_costs(g, backward_, g.units.count)),
        described_(describe_values(g, backward_, o.samples, value_count_)),
        values_(described_.table(g.values.count, o.widths, o.samples)),
        last_reader_(find_last_readers(g.ops, g.values.count)),
        cuts_(cut_units(training_costs_.begin(), g.units.count, o.stages,
                        [&](auto const& times, int units, int stages, auto& cuts) {
                          uncut_model const uncut{graph_, backward_, values_, last_reader_.begin()};
                          if constexpr (requires { cut(uncut, times, units, stages, cuts); })
                            cut(uncut, times, units, stages, cuts);
                          else
                            cut(times, units, stages, cuts);
                        })),
        stage_of_unit_(find_stages(cuts_.begin(), o.stages, g.units.count)),
        crossing_(
            find_boundaries(g, backward_, values_, last_reader_.begin(), cuts_.begin(), o.stages,
                            3 * count_crossings(g, last_reader_.begin(), cuts_.begin(), o.stages) +
                                o.stages * backward_.inputs)),
        read_once_(find_read_once(g, backward_, o.widths.has_copies() ? value_count_ : 0)),
        recomputed_(find_recomputed(g, backward_, o.recompute, stage_of_unit_.begin(), once(),
                                    g.ops.count, g.values.count)),
        recomputed_ops_(list_recomputed(g.ops, recomputed_.runs.begin(), recomputed_.ops)),
        again_{recomputed_ops_.begin(), recomputed_.ops},
        costs_(find_costs(training_costs_, again_, g.units.count)),
        counted_(count_reads(g, backward_, again_, crossing_.table(), recomputed_.dropped.begin(),
                             o.recompute.keeps_last || o.recomputes_ahead, value_count_,
                             again_.count == 0 ? 0 : value_count_)),
        kernels_{lists_of(g, backward_, again_), counted_.by_list(), {}, once()} {
    for (op_list l : every_op_list) {
      view<op> const& ops = kernels_.ops[l];
      fused_[l] = fuse_list(ops, g.repetitions, kernels_.uses[l], once(), stage_of_unit_.begin(),
                            ops.count, counted_.operands[l]);
      kernels_.fused[l] = fused_[l];
    }
    numbered_ = number_groups(kernels_, kernels_.fused[op_list::recompute].distinct.count,
                              count_distinct(kernels_.fused));
    further_inputs_ = find_further_inputs(g.ops);
    written_ = find_written(numbered_.shapes.begin(), numbered_.numbers.count);
    int const loss = g.loss().out[0].index, logits = g.loss().in[0].index;
    model_ = compiled_model{g.parameters,
                            transposed_.begin(),
                            loss,
                            logits,
                            o.stages,
                            cuts_.begin(),
                            stage_of_unit_.begin(),
                            values_,
                            crossing_.table(),
                            recomputed_.dropped.begin(),
                            kernels_.fused,
                            reads_of(logits, kernels_.uses),
                            numbered_.table(),
                            written_.begin(),
                            o.splits_backward,
                            o.recomputes_ahead,
                            {further_inputs_.begin(), int(further_inputs_.size())}};
    ranges_ = find_ranges(g, backward_, model_, o.stages);
  }
  /// Not copyable: the views of compiled_model point into this object.
  heap_compilation(heap_compilation const&) = delete;
  heap_compilation& operator=(heap_compilation const&) = delete;

  /// Views into this object's memory, valid as long as the object lives.
  graph_view const& graph() const { return graph_; }
  gradient_view const& backward() const { return backward_; }
  kernel_lists const& kernels() const { return kernels_; }
  compiled_model const& model() const { return model_; }
  /// Costs per sample, by unit.
  view<unit_cost> costs() const { return {costs_.begin(), graph_.units.count}; }
  /// The distinct kernel groups, by number.
  view<group> groups() const { return {numbered_.shapes.begin(), model_.numbers.count}; }
  stage_range const& range(int stage) const { return ranges_[stage]; }

 private:
  static heap_array<loss_input> find_further_inputs(view<op> ops) {
    int count = 0;
    for (op const& o : ops) count += is_further_loss(o);
    heap_array<loss_input> all(count);
    list_further_inputs(ops, all.begin());
    return all;
  }
  bool const* once() const { return read_once_.size() > 0 ? read_once_.begin() : nullptr; }

  // The results, in the order of the passes that make them.
  graph_view const graph_;
  heap_gradients const gradients_;
  gradient_view const backward_;
  int const value_count_;
  heap_array<copy_layout> transposed_;
  heap_array<unit_cost> training_costs_;
  value_memory<int> described_;
  value_table values_;
  heap_array<short> last_reader_;
  heap_array<int> cuts_;
  heap_array<short> stage_of_unit_;
  boundary_memory<int, int> crossing_;
  heap_array<bool> read_once_;
  recompute_memory<int, int> recomputed_;
  heap_array<op> recomputed_ops_;
  view<op> again_;
  heap_array<unit_cost> costs_;
  count_memory<int, int> counted_;
  kernel_lists kernels_;
  per_op_list<fuse_memory<int, int>> fused_;
  number_memory<int, int> numbered_;
  heap_array<unsigned> written_;
  heap_array<loss_input> further_inputs_;
  compiled_model model_;
  heap_array<stage_range> ranges_;
};

/// A stage of a model compiled at run time: the order of its programs and the layout of its memory.
class heap_stage {
 public:
  /// Orders the programs of a stage and lays out its memory. The compilation must outlive this
  /// object.
  ///
  /// drops: whether forward drops the values that backward recomputes
  heap_stage(heap_compilation const& c, int stage, bool drops) {
    compiled_model const& m = c.model();
    stage_range const& r = c.range(stage);
    boundary const entered = m.boundaries[stage], left = m.boundaries[stage + 1];
    int const values = r.local_values(), sent = left.forward.count,
              returned = entered.gradient.count;
    recompute_place const again = m.place_of_recompute(drops);
    layout_ = lay_out_stage({m, r, stage, drops}, {}, values, r.parameters.size(),
                            sent > returned ? sent : returned,
                            programs_of(m.splits_backward, m.recomputes_ahead).count * values,
                            [&](value_layout& pass, program p) {
                              heap_array<scheduled_segment>& order = order_[int(p)];
                              order = heap_array<scheduled_segment>(length_of(p, r, again));
                              order_program(m.fused, r, p, again, order.begin());
                              pass.note(p, this->order(p));
                            });
    places_ = operand_places{r,
                             entered,
                             left,
                             m.values.widths,
                             layout_.values.begin(),
                             layout_.recomputed.begin(),
                             layout_.parameters.begin(),
                             layout_.transposed.begin(),
                             m.transposed};
  }

  layout_totals const& totals() const { return layout_; }
  operand_places const& places() const { return places_; }
  /// The segments of a program in order; none for a program that the schedule does not run.
  view<scheduled_segment> order(program p) const {
    return {order_[int(p)].begin(), int(order_[int(p)].size())};
  }
  view<int> by_offset() const { return {layout_.by_offset.begin(), int(layout_.by_offset.size())}; }
  view<copied> passed_values() const {
    return {layout_.passed_values.begin(), layout_.passed_value_count};
  }
  view<copied> passed_gradients() const {
    return {layout_.passed_gradients.begin(), layout_.passed_gradient_count};
  }

 private:
  heap_array<scheduled_segment> order_[program_count];
  stage_layout<int, int, int> layout_;
  operand_places places_;
};

}  // namespace pp::detail
