// SPDX-License-Identifier: BSL-1.0
//
// Puts the compiler's passes together for one model and one set of options: the constants of a
// pipeline. What the backend instantiates kernels on (`element`, `samples`, `group_at`), what the
// runtime walks (`description`) and what a user reads (`plan`) are all here.
#pragma once

#include <pipe/base/dtype.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/passes/compilation.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/train/diagnose_options.hpp>
#include <pipe/train/pipeline_schedule.hpp>
#include <pipe/train/plan.hpp>

namespace pp {

template <class M, class Options>
struct compiled_pipeline {
  template <option_family F>
  using option = typename Options::template get<F>;
  using precision = option<option_family::precision>;
  using element = typename precision::element;
  using value = typename precision::value;
  using optimizer = option<option_family::optimizer>;
  using schedule = option<option_family::schedule>;
  using backend = option<option_family::backend>;
  using averaging = option<option_family::averaging>;
  static constexpr product_policy products = option<option_family::products>::products;
  using leaves = typename M::leaves;
  using context = update_context;
  using tensor = tensor_update<element>;

  using work = pipeline_schedule<M, Options>;
  static constexpr int stages = work::stages, ranks = work::ranks,
                       micro_batches = work::micro_batches, samples = work::samples,
                       threads = option<option_family::threads>::value;
  using passes = typename work::passes;
  using recompute = typename work::recompute;
  static constexpr int first_kept = work::first_kept;
  static constexpr bool some_keep = work::some_keep, some_drop = work::some_drop;
  /// The programs that stage S runs; where both sets are in use, those that keep everything.
  template <int S>
  using programs = typename passes::template programs<S, !some_keep>;
  static constexpr int groups = passes::groups;
  static constexpr group group_at(int g) { return passes::group_at(g); }

  // ---- the schedule ----

  static constexpr bool by_compiler = work::by_compiler;
  static constexpr auto const& problem = work::problem;
  static constexpr auto const& table() { return work::table(); }
  static constexpr auto const& timeline() { return work::timeline(); }

  // ---- memory ----

  /// Programs and memory of stage S; offsets are from the start of the chunk until `chunks` shifts
  /// them.
  template <int S>
  static constexpr chunk_description describe_chunk() {
    constexpr auto const& layout = programs<S>::layout;
    constexpr stage_bytes const& b = layout.bytes;
    chunk_description c;
    c.rank = rank_of(schedule::where, ranks, S);
    c.parameters = parameter_places<S>.items;
    c.parameter_count = parameter_places<S>.size();
    c.parameter_bytes = b.parameters;
    c.trained_bytes = b.trained;
    c.updates = updates<S>.ranges.items;
    c.update_count = int(updates<S>.ranges.size());
    auto const take = [&](long bytes) {
      long const at = c.bytes;
      c.bytes += align_up(bytes);
      return at;
    };
    auto const take_ring = [&](long stride, int slots) {
      return ring{take(stride * slots), stride, slots < 1 ? 1 : slots};
    };
    c.values = take(b.parameters);
    c.gradients = take(b.trained);
    c.state = take(updates<S>.state * long(sizeof(element)));
    c.average = take(averaging::averages ? b.trained : 0);
    c.copy_bytes =
        passes::has_copies ? b.parameters / long(sizeof(element)) * long(sizeof(value)) : 0;
    c.copies = take(c.copy_bytes);
    c.transposed = take(b.transposed);
    c.transposed_bytes = b.transposed;
    int const in_flight = peak_in_flight(table(), c.rank, S);
    long pending = 0;
    bool rereads_result = false, rereads_gradient = false;
    c.first_kept = first_kept;
    auto const add_set = [&]<class Programs>(program_set& set, std::type_identity<Programs>,
                                             int most) {
      constexpr auto const& own = Programs::layout;
      describe_set<Programs, S>(set);
      set.records = take_ring(own.bytes.record, in_flight < most ? in_flight : most);
      pending = own.bytes.pending > pending ? own.bytes.pending : pending;
      rereads_result = rereads_result || own.rereads_result;
      rereads_gradient = rereads_gradient || own.rereads_gradient;
    };
    if constexpr (some_keep)
      add_set(c.keeping, std::type_identity<typename passes::template programs<S, false>>{},
              micro_batches - first_kept);
    if constexpr (some_drop)
      add_set(c.dropping, std::type_identity<typename passes::template programs<S, true>>{},
              first_kept);
    c.pending = take_ring(pending, work::pending_slots(S));
    if constexpr (S + 1 < stages) {
      int const least = work::template slots<S>().activation;
      c.boundary = take_ring(b.boundary, rereads_result && least < in_flight ? in_flight : least);
    }
    if constexpr (S > 0) {
      int const least = work::template slots<S - 1>().gradient;
      c.gradient = take_ring(b.gradient, rereads_gradient && least < work::pending_slots(S)
                                             ? work::pending_slots(S)
                                             : least);
    }
    c.passed_values = layout.passed_values.items;
    c.passed_value_count = int(layout.passed_values.size());
    return c;
  }
  template <class Programs, int S>
  static constexpr void describe_set(program_set& set) {
    set.programs[int(program::forward)] = view<Programs, program::forward>();
    if constexpr (schedule::splits_backward) {
      set.programs[int(program::backward_input)] = view<Programs, program::backward_input>();
      set.programs[int(program::backward_weight)] = view<Programs, program::backward_weight>();
    } else {
      set.programs[int(program::backward)] = view<Programs, program::backward>();
    }
    set.passed_gradients = Programs::layout.passed_gradients.items;
    set.passed_gradient_count = int(Programs::layout.passed_gradients.size());
    if constexpr (S == stages - 1)
      set.output = Programs::template resolve<program::forward>(M::graph.loss().in[0]);
  }
  template <class Programs, program P>
  static constexpr program_view view() {
    return {Programs::template launches<P>.items.items,
            Programs::template launches<P>.operands.items,
            Programs::template launches<P>.items.size()};
  }
  template <int S>
  static constexpr long scratch_bytes() {
    long most = 0;
    if constexpr (some_keep) most = passes::template programs<S, false>::layout.bytes.scratch;
    if constexpr (some_drop)
      if (long const n = passes::template programs<S, true>::layout.bytes.scratch; n > most)
        most = n;
    return most;
  }
  template <int S>
  static constexpr auto parameter_places = [](auto...) {
    constexpr auto r = passes::ranges[S].parameters;
    list<parameter_place, r[1] - r[0]> places;
    for (int i = r[0]; i < r[1]; ++i) {
      parameter const& p = M::graph.parameters[i];
      places[i - r[0]] = parameter_place{
          i,
          p.trained,
          p.tied_to >= 0,
          p.rows,
          p.columns,
          programs<S>::layout.parameters[i - r[0]],
          passes::backward.transposed[i] ? programs<S>::layout.transposed[i - r[0]] : -1};
    }
    return places;
  }();

  /// How the optimizer walks through a stage's parameters, and how many numbers it keeps about
  /// them.
  template <int Parameters>
  struct update_list {
    static_vector<update_range, Parameters> ranges;
    long state = 0;
  };
  /// law: the ranges cover the trained parameters in the order in which they lie; each is one
  ///      parameter that the optimizer
  /// wants whole, or as many as are trained alike
  template <int S>
  static constexpr auto updates = [](auto...) {
    constexpr auto const& layout = programs<S>::layout;
    constexpr auto r = passes::ranges[S].parameters;
    update_list<r[1] - r[0]> u;
    for (int i = 0; i < r[1] - r[0]; ++i) {
      parameter const& p = M::graph.parameters[r[0] + layout.by_offset[i]];
      if (!p.trained || p.tied_to >= 0) break;
      bool const whole = updates_whole<optimizer>(p.kind);
      long const n = padded<element>(p.elements());
      if (!u.ranges.empty() && !whole && !u.ranges.back().whole &&
          u.ranges.back().rate_scale == p.rate_scale &&
          u.ranges.back().decay_scale == p.decay_scale) {
        u.ranges.back().end += n;
        u.ranges.back().shape.columns += n;
      } else {
        long const begin = u.ranges.empty() ? 0 : u.ranges.back().end;
        tensor_shape const shape = whole ? tensor_shape{p.kind, p.rows, p.columns}
                                         : tensor_shape{tensor_kind::vector, 1, n};
        u.ranges.push_back(
            update_range{begin, begin + n, 0, whole, shape, p.rate_scale, p.decay_scale});
      }
    }
    for (update_range& range : u.ranges) {
      range.state = u.state;
      u.state += padded<element>(state_elements<optimizer>(range.whole, range.shape));
    }
    return u;
  }();

  template <int... S>
  static constexpr long update_workspace(std::integer_sequence<int, S...>) {
    long most = 0;
    auto const look = [&](auto const& u) {
      for (update_range const& range : u.ranges) {
        long const needed =
            workspace_elements<optimizer, backend, element>(range.whole, range.shape);
        if (needed > most) most = needed;
      }
    };
    (look(updates<S>), ...);
    return align_up(most * long(sizeof(element)));
  }

  /// In how many parts each kernel group runs.
  static constexpr auto parts = [](auto...) {
    list<short, groups> p;
    for (int g = 0; g < groups; ++g)
      p[g] =
          static_cast<short>(threads == 1 ? 1 : backend::parts_for(group_at(g), samples, threads));
    return p;
  }();
  /// Of a thread.
  static constexpr long workspace = [](auto...) {
    long most = update_workspace(std::make_integer_sequence<int, stages>{});
    long const of_groups = backend::template workspace_bytes<compiled_pipeline>();
    return most > of_groups ? most : of_groups;
  }();

  /// Of a micro-batch: bytes of an input and, after the last, of the labels; terms of the loss.
  static constexpr long label_elements =
      M::labels_are_ids ? M::graph.output.rows() : M::graph.output.elements();
  static constexpr long loss_rows = samples * long(M::graph.output.rows());
  static constexpr long batch_bytes(int input) {
    if (input == M::graph.size.inputs)
      return samples * label_elements * long(M::labels_are_ids ? sizeof(int) : sizeof(element));
    input_record const& in = M::graph.inputs[input];
    return samples * in.form.elements() *
           long(in.is_ids    ? sizeof(int)
                : in.of_loss ? sizeof(element)
                             : sizeof(value));
  }
  /// Bit i is set: a chunk of rank r reads input i, or, the last, the labels.
  static constexpr auto inputs_read = [](auto...) {
    list<unsigned, ranks> read;
    auto const note = [&](op const* ops, int n) {
      for (int i = 0; i < n; ++i)
        for (operand const& x : ops[i].in)
          if (x.where == space::input || x.where == space::label)
            read[rank_of(schedule::where, ranks, passes::stage_of_unit[ops[i].unit])] |=
                1u << (x.where == space::input ? x.index : M::graph.size.inputs);
    };
    note(M::graph.ops, M::graph.size.ops);
    note(passes::backward.input_ops, passes::gradient_sizes.input_ops);
    note(passes::backward.weight_ops, passes::gradient_sizes.weight_ops);
    return read;
  }();
  /// Whether inputs are uploaded, and the machine keeps its books on a device.
  static constexpr bool on_device = requires(chunk_description const* c) {
    backend::book_bytes(c, 0, 0, 0, 0);
  };

  struct memory_map {
    list<chunk_description, stages> chunks;
    list<rank_description, ranks> rank;
  };
  template <int... S>
  static constexpr memory_map map_memory(std::integer_sequence<int, S...>) {
    memory_map m{{{describe_chunk<S>()...}}, {}};
    constexpr long scratch[] = {scratch_bytes<S>()...};
    for (int r = 0; r < ranks; ++r) {
      rank_description& rank = m.rank[r];
      rank.training = std::data(table().row(r));
      rank.training_count = table().size(r);
      rank.evaluation = std::data(work::evaluation().row(r));
      rank.evaluation_count = work::evaluation().size(r);
      long most = 0;
      for (int s = 0; s < stages; ++s) {
        chunk_description& c = m.chunks[s];
        if (c.rank != r) continue;
        for (long* offset : {&c.values, &c.gradients, &c.state, &c.average, &c.copies,
                             &c.transposed, &c.keeping.records.offset, &c.dropping.records.offset,
                             &c.pending.offset, &c.boundary.offset, &c.gradient.offset})
          *offset += rank.bytes;
        rank.bytes += c.bytes;
        if (scratch[s] > most) most = scratch[s];
      }
      rank.scratch = rank.bytes;
      rank.workspace = rank.scratch + align_up(most);
      rank.bytes = rank.workspace + threads * workspace;
      map_step(m, r);
    }
    return m;
  }
  /// What a rank keeps beside values of the model: inputs that are not read where the caller has
  /// them, and its books.
  static constexpr void map_step(memory_map& m, int r) {
    rank_description& rank = m.rank[r];
    long from = rank.bytes;
    auto const take = [&](long bytes) {
      long const at = rank.bytes;
      rank.bytes += align_up(bytes);
      return at;
    };
    long const staged = on_device     ? micro_batches
                        : samples > 1 ? 1
                                      : 0;  // of one sample, a micro-batch is there or not
    for (int i = 0; i <= M::graph.size.inputs; ++i)
      if (inputs_read[r] >> i & 1) rank.staging[i] = take(staged * batch_bytes(i));
    rank.staging_bytes = rank.bytes - from;
    from = rank.bytes;
    if (m.chunks[stages - 1].rank == r) {
      rank.row_losses = take(loss_rows * long(sizeof(double)));
      rank.losses = take(micro_batches * long(sizeof(double)));
    }
    if constexpr (on_device) {
      rank.book_bytes = backend::book_bytes(m.chunks.items, stages, r, M::graph.size.parameters,
                                            passes::stream_count);
      rank.books = take(rank.book_bytes);
    } else {
      int const most =
          rank.training_count > rank.evaluation_count ? rank.training_count : rank.evaluation_count;
      rank.executed = take(most * long(sizeof(executed_action)));
      for (int s = 0; s < stages; ++s) {
        chunk_description& c = m.chunks[s];
        if (c.rank != r) continue;
        c.norms = take(2 * c.parameter_count * long(sizeof(double)));
        for (int i = 0; i < c.parameter_count; ++i) rank.block_count += blocks_of(c.parameters[i]);
      }
      rank.blocks = take(rank.block_count * long(sizeof(gradient_block)));
    }
    rank.bookkeeping_bytes = rank.bytes - from;
  }
  struct make_memory {
    static constexpr memory_map make() {
      return map_memory(std::make_integer_sequence<int, stages>{});
    }
  };
  static constexpr memory_map const& memory() { return once<by_compiler, make_memory>::get(); }

  static constexpr parameter_place const& place_of(int parameter) {
    int s = 0;
    while (parameter >= passes::ranges[s].parameters[1]) ++s;
    parameter_place const* const places = [s]<int... S>(std::integer_sequence<int, S...>) {
      parameter_place const* const of_stage[] = {parameter_places<S>.items...};
      return of_stage[s];
    }
    (std::make_integer_sequence<int, stages>{});
    return places[parameter - passes::ranges[s].parameters[0]];
  }
  static constexpr int tie_count = [](auto...) {
    int n = 0;
    for (int i = 0; i < M::graph.size.parameters; ++i) n += M::graph.parameters[i].tied_to >= 0;
    return n;
  }();
  static constexpr auto ties = [](auto...) {
    list<tie, tie_count> t;
    int n = 0;
    for (int i = 0; i < M::graph.size.parameters; ++i) {
      int const owner = M::graph.parameters[i].tied_to;
      if (owner < 0) continue;
      t[n++] =
          tie{passes::stage_of_unit[M::graph.parameters[i].unit],
              passes::stage_of_unit[M::graph.parameters[owner].unit], place_of(i), place_of(owner)};
    }
    return t;
  }();

  static constexpr pipeline_description description() {
    memory_map const& map = memory();
    pipeline_description d;
    d.ranks = ranks;
    d.chunks = stages;
    d.micro_batches = micro_batches;
    d.samples = samples;
    d.threads = threads;
    d.parts = parts.items;
    d.workspace_bytes = workspace;
    d.loss_rows = int(loss_rows);
    d.chunk = map.chunks.items;
    d.rank = map.rank.items;
    d.parameter_count = M::graph.size.parameters;
    d.streams = passes::streams.items;
    d.stream_count = passes::stream_count;
    d.ties = ties.items;
    d.tie_count = tie_count;
    d.inputs = M::graph.size.inputs;
    for (int i = 0; i < d.inputs; ++i) {
      d.input_is_converted[i] = !M::graph.inputs[i].is_ids && !M::graph.inputs[i].of_loss;
      d.input_bytes[i] = batch_bytes(i);
    }
    d.label_bytes = batch_bytes(d.inputs);
    d.output_bytes = samples * M::graph.output.elements() * long(sizeof(value));
    d.value_type = dtype_of<value>::value;
    d.scales_loss = precision::scales_loss;
    d.averages = averaging::averages;
    d.average_decay = averaging::decay;
    return d;
  }

  // ---- the plan ----

  static constexpr plan_of<stages, ranks> make_plan() {
    memory_map const& map = memory();
    plan_of<stages, ranks> p;
    p.micro_batches = micro_batches;
    p.micro_batch_size = samples;
    p.threads = threads;
    p.schedule = schedule::name;
    p.optimizer = optimizer::name;
    p.precision = precision::name;
    p.kernels = groups;
    p.bubble = timeline().bubble_by_makespan();
    p.bubble_stage_local = timeline().bubble_by_stage_local_span();
    long total = 0, slowest = 0;
    for (int s = 0; s < stages; ++s) {
      long const time = problem.cost(s).forward + problem.cost(s).backward_input +
                        problem.cost(s).backward_weight;
      total += time;
      if (time > slowest) slowest = time;
    }
    p.imbalance = double(slowest) * stages / double(total);
    for (int s = 0; s < stages; ++s) {
      chunk_description const& c = map.chunks[s];
      stage_plan& q = p.stages[s];
      q.rank = c.rank;
      q.first_layer = passes::cuts[s];
      q.end_layer = passes::cuts[s + 1];
      q.in = s == 0 ? M::graph.inputs[0].form : M::graph.units[passes::cuts[s] - 1].out;
      q.out = M::graph.units[passes::cuts[s + 1] - 1].out;
      for (int i = 0; i < c.parameter_count; ++i) {
        parameter_place const& place = c.parameters[i];
        if (place.shared || is_table(M::graph.parameters[place.index].initial.kind)) continue;
        q.parameters += place.elements();
        if (place.trained) q.trained += place.elements();
      }
      for (int u = q.first_layer; u < q.end_layer; ++u) {
        q.forward_flops += samples * passes::costs[0][u].flops;
        q.backward_flops += samples * (passes::costs[1][u].flops + passes::costs[2][u].flops);
        if (some_drop) q.recompute_flops += samples * passes::again_costs[u].flops;
      }
      q.share = double(problem.cost(s).forward + problem.cost(s).backward_input +
                       problem.cost(s).backward_weight) /
                double(total);
      q.in_flight = peak_in_flight(table(), c.rank, s);
      program_set const& set = some_drop ? c.dropping : c.keeping;
      q.forward_kernels = set.programs[int(program::forward)].count;
      for (int k = 1; k < program_count; ++k) q.backward_kernels += set.programs[k].count;
      q.parameter_bytes = c.parameter_bytes + align_up(c.copy_bytes);
      q.gradient_bytes = c.trained_bytes;
      q.optimizer_bytes = c.copies - c.state;
      q.transposed_bytes = align_up(c.transposed_bytes);
      q.saved_bytes = c.keeping.records.bytes() + c.dropping.records.bytes() + c.pending.bytes();
      q.boundary_bytes = c.boundary.bytes() + c.gradient.bytes();
      q.bytes = c.bytes;
      p.parameters += q.parameters;
      p.trained += q.trained;
      p.step_flops += micro_batches * (q.forward_flops + q.backward_flops);
      if (q.in_flight > p.peak_in_flight) p.peak_in_flight = q.in_flight;
    }
    for (int r = 0; r < ranks; ++r) {
      p.rank_bytes[r] = map.rank[r].bytes;
      p.staging_bytes[r] = map.rank[r].staging_bytes;
      p.bookkeeping_bytes[r] = map.rank[r].bookkeeping_bytes;
      p.bytes += map.rank[r].bytes;
    }
    return p;
  }
  struct planner {
    static constexpr auto make() { return make_plan(); }
  };
  static constexpr auto const& plan() { return once<by_compiler, planner>::get(); }

  // ---- what can only be wrong now ----

  /// The first rank that needs more than the limit, or -1.
  static constexpr long limit = option<option_family::memory_limit>::value;
  static constexpr int over() {
    for (int r = 0; r < ranks; ++r)
      if (limit > 0 && memory().rank[r].bytes > limit) return r;
    return -1;
  }
  static constexpr auto diagnose_memory() {
    if constexpr (!by_compiler) {
      return std::type_identity<nothing_wrong>{};
    } else if constexpr (constexpr int rank = over(); rank < 0) {
      return std::type_identity<nothing_wrong>{};
    } else {
      constexpr long bytes = plan().rank_bytes[rank];
      return []<int... I>(std::integer_sequence<int, I...>) {
        return diagnosis_of<
            wrong::memory_limit_is_exceeded, wrong::OnRank<rank>, wrong::OverBytes<bytes - limit>,
            wrong::LimitBytes<limit>, wrong::NeededBytes<bytes>,
            wrong::Takes<plan().memory_of(rank)[I].what, plan().memory_of(rank)[I].bytes>...>();
      }
      (std::make_integer_sequence<int, used(plan().memory_of(rank))>{});
    }
  }
  /// How many kinds of memory there are in a list.
  static constexpr int used(list<memory_share, memory_uses> const& shares) {
    int n = 0;
    for (memory_share const& s : shares) n += s.bytes > 0;
    return n;
  }

  /// What the compiler has left to the program. Throws pp::error if the schedule is not valid or a
  /// rank needs too much memory.
  static void check_at_construction() {
    if constexpr (!by_compiler) {
      work::table();
      if (int const rank = over(); rank >= 0)
        complain<error>({"rank ", rank, " needs ", memory().rank[rank].bytes, " bytes of memory, ",
                         memory().rank[rank].bytes - limit, " more than the limit of ", limit});
    }
  }
};

}  // namespace pp
