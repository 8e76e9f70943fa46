// SPDX-License-Identifier: BSL-1.0
//
// The compiler of models at run time: the passes of compilation.hpp in the same order, on heap
// memory. For models that are too large for constants, and for tests.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <utility>

#include <pipe/base/heap_array.hpp>
#include <pipe/passes/costs.hpp>
#include <pipe/passes/recompute.hpp>
#include <pipe/passes/launches.hpp>
#include <pipe/passes/uses.hpp>

namespace pp::detail {

/// The backward ops of a graph, on the heap.
class heap_gradients {
 public:
  /// Differentiates twice: first to count, then into arrays of exactly those lengths. The graph
  /// must outlive the result.
  explicit heap_gradients(graph_view const& g) {
    gradient_sinks counts;
    fill(g, counts);
    gradient_size const n = counts.sizes();
    input_ops_ = heap_array<op>(n.input_ops);
    weight_ops_ = heap_array<op>(n.weight_ops);
    values_ = heap_array<value>(n.values);
    crossings_ = heap_array<crossing>(n.crossings);
    transposed_ = heap_array<bool>(g.parameters.count + 1);
    gradient_sinks sinks{{input_ops_.begin()},
                         {weight_ops_.begin()},
                         {values_.begin()},
                         {crossings_.begin()},
                         transposed_.begin()};
    fill(g, sinks);
    view_ = gradient_view{sinks.input_ops.filled(), sinks.weight_ops.filled(),
                          sinks.values.filled(), sinks.crossings.filled(), sinks.transposed};
  }
  operator gradient_view() const { return view_; }

 private:
  /// One differentiation, with working memory of its own.
  static void fill(graph_view const& g, gradient_sinks& out) {
    heap_array<bool> needed(g.values.count);
    heap_array<operand> gradient(g.values.count), remade(g.values.count);
    differentiate(g, gradient_scratch{needed.begin(), gradient.begin(), remade.begin()}, out);
  }
  heap_array<op> input_ops_, weight_ops_;
  heap_array<value> values_;
  heap_array<crossing> crossings_;
  heap_array<bool> transposed_;
  gradient_view view_;
};

/// A list of ops as launches, on the heap.
class heap_fused {
 public:
  heap_fused() = default;
  /// bound: at least the number of operands that the ops read and write
  heap_fused(view<op> ops, view<repetition> repetitions, int const* uses, bool const* read_once,
             short const* stage_of_unit, int bound)
      : segments_(ops.count), operands_(bound), distinct_(ops.count) {
    heap_array<std::uint64_t> hashes(ops.count + 1);
    heap_array<int> after(ops.count + 1), sources(bound);
    fused_sinks out{{segments_.begin()}, {operands_.begin()}, {distinct_.begin()}};
    fuse(ops, repetitions, uses, read_once, stage_of_unit,
         fuse_scratch{hashes.begin(), after.begin(), sources.begin()}, out);
    view_ = out.filled();
  }
  operator fused_view() const { return view_; }

 private:
  heap_array<segment> segments_;
  heap_array<operand> operands_;
  heap_array<int> distinct_;
  fused_view view_;
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
};

/// A model compiled at run time. The graph must outlive it.
///
/// law: every list is equal to that of the `compilation` with the same options
class heap_compilation {
 public:
  /// Runs all passes. cut(costs by unit, units, stages, cuts) fills cuts[stages + 1], as partition
  /// policies do.
  template <class Cut>
  heap_compilation(graph_view const& g, compile_options const& options, Cut const& cut)
      : graph_(g), gradients_(g), backward_(gradients_) {
    m_.parameters = g.parameters;
    transposed_ = heap_array<bool>(g.parameters.count);
    for (int p = 0; p < g.parameters.count; ++p)
      transposed_[p] = options.widths.has_transposes && backward_.transposed[p];
    m_.transposed = transposed_.begin();
    m_.loss = g.loss().out[0].index;
    m_.logits = g.loss().in[0].index;
    m_.stages = options.stages;
    m_.splits_backward = options.splits_backward;
    m_.recomputes_ahead = options.recomputes_ahead;
    partition(cut);
    find_values(options);
    plan_recomputation(options.recompute);
    fuse_all(options.recompute);
    number();
    ranges_ = heap_array<stage_range>(options.stages);
    find_ranges(graph_, backward_, m_, ranges_.begin());
  }
  /// Not copyable: the views of a model point into this object.
  heap_compilation(heap_compilation const&) = delete;
  heap_compilation& operator=(heap_compilation const&) = delete;

  /// Views into this object's memory, valid as long as it lives.
  graph_view const& graph() const { return graph_; }
  gradient_view const& backward() const { return backward_; }
  kernel_lists const& kernels() const { return kernels_; }
  compiled_model const& model() const { return m_; }
  /// Costs per sample, by unit.
  view<unit_cost> costs() const { return view<unit_cost>{costs_.begin(), graph_.units.count}; }
  /// The distinct kernel groups, by number.
  view<group> groups() const { return view<group>{groups_.begin(), m_.numbers.count}; }
  stage_range const& range(int stage) const { return ranges_[stage]; }

 private:
  /// Cuts the model into stages by the training time of its units, which are whole: costs -> cuts
  /// -> the stage of each unit.
  template <class Cut>
  void partition(Cut const& cut) {
    int const units = graph_.units.count;
    costs_ = heap_array<unit_cost>(units);
    add_costs(op_list::forward, graph_.ops, costs_.begin());
    add_costs(op_list::input_gradients, backward_.input_ops, costs_.begin());
    add_costs(op_list::weight_gradients, backward_.weight_ops, costs_.begin());
    heap_array<long> total(units);
    for (int u = 0; u < units; ++u) total[u] = training_time(costs_[u]);
    cuts_ = heap_array<int>(m_.stages + 1);
    cut(total, units, m_.stages, cuts_);
    stage_of_unit_ = heap_array<short>(units);
    for (int s = 0; s < m_.stages; ++s)
      for (int u = cuts_[s]; u < cuts_[s + 1]; ++u) stage_of_unit_[u] = short(s);
    m_.cuts = cuts_.begin();
    m_.stage_of_unit = stage_of_unit_.begin();
  }
  /// The bytes of every value, and those that cross each cut. Needs the cuts.
  void find_values(compile_options const& options) {
    graph_view const& g = graph_;
    elements_ = heap_array<int>(g.values.count + backward_.values.count);
    is_statistic_ = heap_array<bool>(g.values.count + backward_.values.count);
    describe_values(g, backward_, elements_.begin(), is_statistic_.begin(), options.samples);
    m_.values = value_table{{elements_.begin(), int(elements_.size())},
                            {is_statistic_.begin(), int(is_statistic_.size())},
                            g.values.count,
                            options.widths,
                            options.samples};
    heap_array<short> last_reader(g.values.count);
    find_last_readers(g.ops, last_reader.begin());
    boundaries_ = heap_array<boundary_table::entry>(m_.stages + 1);
    handed_on_ =
        heap_array<handed_on>(3L * count_crossings(g, last_reader.begin(), m_.cuts, m_.stages));
    sink<handed_on> items{handed_on_.begin()};
    find_boundaries(g, backward_, m_.values, last_reader.begin(), m_.cuts, m_.stages,
                    boundaries_.begin(), items);
    m_.boundaries = boundary_table{{boundaries_.begin(), m_.stages + 1}, items.filled()};
  }
  /// The forward ops that backward runs again, and the values that forward then need not keep.
  /// Their cost is added to that of their units.
  void plan_recomputation(recompute_rule rule) {
    graph_view const& g = graph_;
    if (m_.values.widths.has_copies()) {
      int const values = m_.values.size();
      read_once_ = heap_array<bool>(values);
      heap_array<int> times(values);
      find_read_once(g.ops, backward_.input_ops, backward_.weight_ops, values, times.begin(),
                     read_once_.begin());
      kernels_.read_once = read_once_.begin();
    }
    heap_array<bool> runs(g.ops.count), read(g.values.count);
    dropped_ = heap_array<bool>(g.values.count);
    recompute_plan plan{runs.begin(), dropped_.begin()};
    plan_recompute(g, backward_, rule, m_.stage_of_unit, kernels_.read_once, read.begin(), plan);
    recomputed_ops_ = heap_array<op>(plan.ops);
    sink<op> to{recomputed_ops_.begin()};
    list_recomputed(g.ops, runs.begin(), to);
    m_.dropped = dropped_.begin();
    kernels_.ops = lists_of(g, backward_, view<op>{recomputed_ops_.begin(), plan.ops});
    add_costs(op_list::recompute, kernels_.ops[op_list::recompute], costs_.begin());
  }
  /// Fuses each of the four lists of ops. Uses are counted over all lists first, because a value
  /// inside a group is stored only if an op outside the group reads it.
  void fuse_all(recompute_rule rule) {
    bool const recomputes = kernels_.ops[op_list::recompute].count > 0;
    for (heap_array<int>& uses : uses_) uses = heap_array<int>(m_.values.size());
    use_memory const memory{uses_[0].begin(), uses_[1].begin(), uses_[2].begin()};
    kernels_.uses = uses_by_list(memory.by_all, memory.by_backward,
                                 recomputes ? memory.by_recompute : memory.by_backward);
    per_op_list<int> bound = count_backward_uses(graph_, backward_, memory.by_backward);
    // The counts of backward are the start of the other two.
    for (int v = 0; v < m_.values.size(); ++v) uses_[0][v] = uses_[2][v] = uses_[1][v];
    count_other_uses(graph_, kernels_.ops[op_list::recompute], m_.boundaries.items, m_.dropped,
                     rule.keeps_last || m_.recomputes_ahead, memory, bound);
    for (op_list l : every_op_list) {
      fused_[l] = heap_fused(kernels_.ops[l], graph_.repetitions, kernels_.uses[l],
                             kernels_.read_once, m_.stage_of_unit, bound[l]);
      m_.fused[l] = kernels_.fused[l] = fused_[l];
    }
    m_.logits_read = reads_of(m_.logits, kernels_.uses);
  }
  /// Numbers the distinct groups over all lists, so that equal groups are one kernel.
  void number() {
    recomputed_numbers_ = heap_array<int>(kernels_.fused[op_list::recompute].distinct.count);
    m_.numbers = number_groups(kernels_, recomputed_numbers_.begin());
    m_.numbers.recomputed = recomputed_numbers_.begin();
    groups_ = heap_array<group>(m_.numbers.count);
    describe_groups(kernels_, m_.numbers, groups_.begin());
    written_ = heap_array<unsigned>(m_.numbers.count);
    for (int g = 0; g < m_.numbers.count; ++g) written_[g] = slots_written(groups_[g]);
    m_.written = written_.begin();
  }

  graph_view const graph_;
  heap_gradients const gradients_;
  gradient_view const backward_;
  kernel_lists kernels_;
  compiled_model m_;
  heap_array<bool> transposed_;
  heap_array<unit_cost> costs_;
  heap_array<int> cuts_;
  heap_array<short> stage_of_unit_;
  heap_array<int> elements_;
  heap_array<bool> is_statistic_, dropped_, read_once_;
  heap_array<boundary_table::entry> boundaries_;
  heap_array<handed_on> handed_on_;
  heap_array<op> recomputed_ops_;
  /// By all, by backward, by backward and recomputation: see use_memory.
  heap_array<int> uses_[3];
  per_op_list<heap_fused> fused_;
  heap_array<int> recomputed_numbers_;
  heap_array<group> groups_;
  heap_array<unsigned> written_;
  heap_array<stage_range> ranges_;
};

/// A stage of a model compiled at run time: the order of its programs and the layout of its memory.
class heap_stage {
 public:
  /// Orders the programs of a stage and lays out its memory. The compilation must outlive it.
  ///
  /// drops: whether forward drops what backward recomputes
  heap_stage(heap_compilation const& c, int stage, bool drops) {
    compiled_model const& m = c.model();
    stage_range const& r = c.range(stage);
    int const values = r.local_values(), parameters = r.parameters.size();
    values_ = heap_array<address>(values);
    recomputed_ = heap_array<address>(values);
    parameters_ = heap_array<long>(parameters);
    by_offset_ = heap_array<int>(parameters);
    transposed_ = heap_array<long>(parameters);
    passed_values_ = heap_array<copied>(m.boundaries[stage + 1].forward.count);
    passed_gradients_ = heap_array<copied>(m.boundaries[stage].gradient.count);
    layout_sinks out{values_.begin(),
                     recomputed_.begin(),
                     parameters_.begin(),
                     by_offset_.begin(),
                     transposed_.begin(),
                     {passed_values_.begin()},
                     {passed_gradients_.begin()}};
    heap_array<char> turn(parameters);
    lay_out_parameters(m, r, turn.begin(), out, totals_.bytes);

    view<program> const run = programs_of(m.splits_backward, m.recomputes_ahead);
    recompute_place const again = m.place_of_recompute(drops);
    heap_array<occurrence> seen(long(run.count) * values);
    heap_array<scratch_block> forward_blocks(r.values.size() + 1), backward_blocks(values + 1);
    layout_scratch scratch{{}, forward_blocks.begin(), backward_blocks.begin()};
    for (int i = 0; i < run.count; ++i) scratch.seen[int(run[i])] = seen.begin() + long(i) * values;
    value_layout pass(m, r, stage, drops, scratch);
    for (program p : run) {
      heap_array<scheduled_segment>& order = order_[int(p)];
      order = heap_array<scheduled_segment>(length_of(p, r, again));
      order_program(m.fused, r, p, again, order.begin());
      pass.note(p, this->order(p));
    }
    pass.run(out, totals_);
    places_ = operand_places{r,
                             m.boundaries[stage],
                             m.boundaries[stage + 1],
                             m.values.widths,
                             values_.begin(),
                             recomputed_.begin(),
                             parameters_.begin(),
                             transposed_.begin()};
    passed_value_count_ = out.passed_values.count;
    passed_gradient_count_ = out.passed_gradients.count;
  }

  layout_totals const& totals() const { return totals_; }
  operand_places const& places() const { return places_; }
  /// The segments of a program in order; empty for a program that the schedule does not run.
  view<scheduled_segment> order(program p) const {
    return {order_[int(p)].begin(), int(order_[int(p)].size())};
  }
  view<int> by_offset() const { return {by_offset_.begin(), int(by_offset_.size())}; }
  view<copied> passed_values() const { return {passed_values_.begin(), passed_value_count_}; }
  view<copied> passed_gradients() const {
    return {passed_gradients_.begin(), passed_gradient_count_};
  }

 private:
  heap_array<scheduled_segment> order_[program_count];
  heap_array<address> values_, recomputed_;
  heap_array<long> parameters_, transposed_;
  heap_array<int> by_offset_;
  heap_array<copied> passed_values_, passed_gradients_;
  int passed_value_count_ = 0, passed_gradient_count_ = 0;
  layout_totals totals_;
  operand_places places_;
};

}  // namespace pp::detail
