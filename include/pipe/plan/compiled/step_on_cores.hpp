// SPDX-License-Identifier: BSL-1.0
//
// The expected time of a step on the cores of one machine: of one thread, of a plan's stages, and
// of one stage whose threads are as many. An estimate that is added to the simulated schedule, of
// what the schedule's times leave out: waking threads, reading weights, updating them.
#pragma once

#include <pipe/backend/host/parts.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/static_vector.hpp>
#include <pipe/data/work_by_input.hpp>
#include <pipe/graph/cost.hpp>
#include <pipe/passes/group.hpp>
#include <pipe/passes/op_list.hpp>
#include <pipe/plan/compiled/stage_times.hpp>
#include <pipe/plan/plan.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/problem.hpp>
#include <pipe/schedule/simulate.hpp>

namespace pp::detail {

/// Speeds of a core, as measured on cores with AVX-512 in training steps.
struct core_speed {
  double work = 140;           ///< estimated time per nanosecond; 1 where times are measured
  double bytes = 24;           ///< per nanosecond, through the outer caches
  double cached = 1 << 20;     ///< bytes that stay in the caches of a core until they are read
  double from_cache = 2. / 3;  ///< time to move these, in that of others
  double exchanged = 8;        ///< per nanosecond, of what another core has just written
  double starting = 20'000;    ///< ns to begin and end a step on threads that sleep in between
  double sharing = 4'000;      ///< ns to wake threads for a launch, and to await the slowest
  double handing_on = 1'000;   ///< ns from the end of an action to its reader on another rank
};

/// Causes for which N cores take more than an N-th of the time of one.
enum class core_loss : unsigned char {
  bubble,     ///< ranks wait while the pipeline fills and drains
  cut,        ///< ranks wait for a slower stage
  hand_offs,  ///< values travel between ranks
  undivided,  ///< kernels that threads cannot divide, or not evenly
  waking,     ///< a launch begins and ends on all threads
  weights,    ///< read by every thread, or again for each micro-batch
  values,     ///< do not stay in the cache between kernels; below 0 where more of them do
  exchange    ///< threads read what other threads have written
};
inline constexpr int core_losses = 8;

/// The expected time of a step.
///
/// units: nanoseconds
struct expected_step {
  double time = 0;
  double lost[core_losses]{};  ///< by core_loss: what the cause costs
  constexpr double& operator[](core_loss l) { return lost[int(l)]; }
  constexpr double operator[](core_loss l) const { return lost[int(l)]; }
  /// The cause that costs most.
  constexpr core_loss largest() const {
    int most = 0;
    for (int l = 1; l < core_losses; ++l)
      if (lost[l] > lost[most]) most = l;
    return core_loss(most);
  }
};

/// The op of a group without its kind.
constexpr op shape_of_group(group const& g) {
  op o;
  o.rows = g.rows;
  o.columns = g.columns;
  o.attributes = g.attributes;
  return o;
}
/// The cost of a group for a sample: of its anchor and its pointwise ops.
constexpr cost cost_of_group(group const& g) {
  op o = shape_of_group(g);
  cost all;
  if (g.anchor != op_kind::pointwise) {
    o.kind = g.anchor;
    all += cost_of(o);
  }
  for (auto const* ops : {&g.prologue, &g.epilogue})
    for (pointwise_op const& p : *ops) {
      o.kind = p.kind;
      all += cost_of(o);
    }
  return all;
}

/// The FLOPs of a group that grow with the square of a sample's length.
constexpr long squared_flops(group const& g) {
  op o = shape_of_group(g);
  o.kind = g.anchor;
  return squared_flops(o);
}

/// Elements of the matrix that all samples of a group's product share; 0 for other groups.
constexpr long shared_elements(group const& g) {
  if (g.attributes.kind() == attribute_kind::convolution)
    return long(g.attributes.convolution().inner()) * g.attributes.convolution().filters;
  if (g.attributes.kind() == attribute_kind::contraction && g.anchor != op_kind::row_dot)
    return long(g.attributes.contraction().inner) * g.columns;
  return 0;
}

/// The share of a group that the busiest of n threads computes; 1 for a group that is not divided.
template <class Backend>
constexpr double busiest_share(group const& g, int samples, int n) {
  if (n == 1 || Backend::parts_for(g, samples, n) == 1) return 1;
  long count = long(g.rows) * samples, at_once = host::row_alignment;
  if (g.attributes.kind() == attribute_kind::attention)
    count = long(g.attributes.attention().kv_heads) * samples, at_once = 1;
  else if (g.anchor == op_kind::matmul_weight_gradient)
    count = g.attributes.contraction().inner;
  else if (g.anchor == op_kind::convolution_weight_gradient)
    count = g.attributes.convolution().inner();
  else if (shared_elements(g) == 0)
    return 1. / n;
  return double(host::largest_part(host::extent(count), host::extent(at_once), n)) / double(count);
}

/// Bytes that each of n threads reads of what the others have written: the threads of a group's
/// readers and writers own rows, its own threads own columns or heads.
constexpr double exchanged_bytes(group const& g, int samples, int n, int value_bytes) {
  double left = 0, all = 0;  // elements of which a thread reads its columns, and all
  if (g.attributes.kind() == attribute_kind::attention) {
    // Queries, keys, values and results; in backward their gradients too.
    left = (g.anchor == op_kind::attention ? 4. : 8.) * g.rows * g.columns;
  } else if (g.anchor == op_kind::matmul_weight_gradient) {
    left = double(g.rows) * g.attributes.contraction().inner;
    all = double(g.rows) * g.columns;
  } else if (g.anchor == op_kind::convolution_weight_gradient) {
    convolution_attributes const of = g.attributes.convolution();
    left = double(of.in_rows()) * of.channels;
    all = double(of.out_rows()) * of.filters;
  }
  return (left / n + all) * (n - 1) / n * samples * value_bytes;
}

/// Expected steps of the plan of P, a compiled_pipeline or a planned_pipeline, on as many cores as
/// all its ranks have threads.
///
/// needs: a backend of the host; but for by_length(), a schedule that trains
/// law:   time = one_thread().time / cores + all that is lost
template <class P>
class step_on_cores {
  static constexpr int stages = P::stages, accumulations = P::sum::accumulations;
  static constexpr bool is_measured = requires { typename P::partition::profile; };
  /// One stage needs no micro-batches, so in place of several stages it has one of all samples.
  static constexpr int joined = P::ranks == 1 ? 1 : P::micro_batches;

 public:
  static constexpr int cores = P::ranks * P::threads;
  using problem_of_stages = problem<static_vector<chunk_cost, stages>>;

  explicit constexpr step_on_cores(core_speed const& core = {}) : core_(core) {
    if (is_measured) core_.work = 1;
    compiled_model const& model = P::work::whole_model();
    for (op_list l : every_op_list) {
      if (l == op_list::recompute && !P::some_drop) continue;
      double all = 0, measured = 0;
      for (segment const& launch : model.fused[l].segments) {
        group const& g = P::work::kernel_shapes()[model.numbers.number(l, launch.group)];
        cost const c = cost_of_group(g);
        all += double(estimated_time(c));
        measured += time_of(c, P::samples);
        stage_work& s = stage_[model.stage_of_unit[launch.unit]];
        s.weights[l] += double(shared_elements(g) * long(sizeof(typename P::value)));
        s.estimate[l] += double(estimated_time(c));
        s.squares[l] += double(squared_flops(g));
        s.add(launch, g, double(estimated_time(c)));
        if (on_rank_[l].add(*this, g, c, P::samples, P::threads))
          s.sharing[l] += sharing(g, P::samples, P::threads);
        on_one_[l].add(*this, g, c, P::samples * joined, 1);
        if (on_all_[l].add(*this, g, c, P::samples * joined, cores)) {
          waking_ += core_.sharing;
          exchange_ += sharing(g, P::samples * joined, cores) - core_.sharing;
        }
      }
      for (team_share* t : {&on_rank_[l], &on_one_[l], &on_all_[l]})
        t->divide(is_measured ? measured : all);
    }
    for (int u = 0; u < P::work::costs().count; ++u) add_time(u, model);
    if (is_measured) leave_out_weights();
    for (int s = 0; s < stages; ++s) {
      stage_plan const& p = P::plan().stages[s];
      // Weights and state are read and written, gradients read; copies are written from weights.
      stage_[s].update = double(2 * p.parameter_bytes + p.gradient_bytes + 2 * p.optimizer_bytes +
                                2 * p.transposed_bytes) /
                         core_.bytes;
    }
  }

  /// One stage on one thread.
  constexpr expected_step one_thread() const { return one_stage(1); }
  /// One stage on a thread for each core.
  constexpr expected_step threads() const { return one_stage(cores); }
  /// The plan's stages, by its schedule.
  constexpr expected_step of_plan() const {
    constexpr double times = double(P::micro_batches) * accumulations;
    problem_of_stages p{P::ranks, stages, P::micro_batches};
    expected_step e;
    per_op_list<double> mean;
    double busy = 0, updates = 0;
    for (int s = 0; s < stages; ++s) {
      stage_work const& w = stage_[s];
      per_op_list<double> t;
      for (op_list l : every_op_list) {
        team_share const of = on_rank_[l];
        double const read = reading_of(s, l);
        t[l] = w.time[l] * of.busiest + w.sharing[l] + read;
        mean[l] += t[l] / stages;
        busy += t[l] * times / P::ranks;
        e[core_loss::undivided] += w.time[l] * (of.busiest - of.even) * times / P::ranks;
        e[core_loss::waking] += w.sharing[l] * times / P::ranks;
        e[core_loss::weights] += read * times / P::ranks - one_reading(w, l) / cores;
        e[core_loss::values] += w.time[l] * times * (of.even / P::ranks - on_one_[l].even / cores);
      }
      p.costs.push_back(cost_of_stage(t));
      updates += stage_[s].update / cores;
    }
    problem_of_stages equal = p;
    for (chunk_cost& c : equal.costs) c = cost_of_stage(mean);
    double const even = makespan(equal), uneven = makespan(p);
    for (int s = 0; s < stages; ++s) p.costs[std::size_t(s)].hop = hop(s);
    double const all = makespan(p), starting = cores > 1 ? core_.starting : 0,
                 slowest = slowest_update();
    e.time = all * accumulations + slowest + starting;
    e[core_loss::bubble] = even * accumulations - busy;
    e[core_loss::cut] = (uneven - even) * accumulations + slowest - updates;
    e[core_loss::hand_offs] = (all - uneven) * accumulations + starting;
    return e;
  }

  /// Full micro-batches of the plan's stages by what their times grow with: all, with the links
  /// between ranks; what grows with the square of a sample's length; what does not grow, which are
  /// weights that are read and threads that are woken. And what a step takes beside them.
  struct full_micro_batches {
    problem_of_stages all, squares, fixed;
    double of_step;
    list<work_by_input, stages> shares;  ///< of rows and squares, by axis: see op::axis
  };
  constexpr full_micro_batches by_length() const {
    problem_of_stages const none{P::ranks, stages, P::micro_batches};
    full_micro_batches of{
        none,
        none,
        none,
        (P::schedule::trains ? slowest_update() : 0) + (cores > 1 ? core_.starting : 0),
        {}};
    for (int s = 0; s < stages; ++s) {
      stage_work const& w = stage_[s];
      of.shares[s] = w.shares();
      per_op_list<double> all, squares, fixed;
      for (op_list l : every_op_list) {
        double const rows = w.time[l] * on_rank_[l].busiest;
        fixed[l] = w.sharing[l] + reading_of(s, l);
        squares[l] = w.estimate[l] > 0 ? rows * w.squares[l] / w.estimate[l] : 0;
        all[l] = rows + fixed[l];
      }
      chunk_cost cost = cost_of_stage(all);
      cost.bytes = bytes_handed_on(s);
      cost.hop = long(core_.handing_on);
      cost.bandwidth = long(core_.exchanged);
      of.all.costs.push_back(cost);
      of.squares.costs.push_back(cost_of_stage(squares));
      of.fixed.costs.push_back(cost_of_stage(fixed));
    }
    return of;
  }

 private:
  /// A stage's work for a micro-batch, by list of ops.
  struct stage_work {
    per_op_list<double> time{};     ///< ns of one thread, without reading weights
    per_op_list<double> weights{};  ///< bytes of products' weights, or of their gradients
    /// Of a sample of the context, estimated: all, and what grows with the square of the length.
    per_op_list<double> estimate{}, squares{};
    per_op_list<double> sharing{};  ///< ns that the threads of a rank take beside their parts
    double update = 0;              ///< ns of one thread at the end of a step
    work_by_input by_axis{};        ///< estimated, without squares and as squares: see op::axis

    /// Adds the estimated time of a launch of group g.
    constexpr void add(segment const& launch, group const& g, double all) {
      double const square = double(squared_flops(g));
      by_axis.rows[launch.axis] += all - square;
      if (square == 0) return;
      bool const has_own_keys = g.attributes.attention().is_fused();
      by_axis.products[launch.axis][has_own_keys ? launch.axis : launch.key_axis] += square;
    }
    constexpr work_by_input shares() const {
      work_by_input all = by_axis;
      double rows = 0, products = 0;
      for (double const x : all.rows) rows += x;
      for (auto const& row : all.products)
        for (double const x : row) products += x;
      for (double& x : all.rows) x /= rows > 0 ? rows : 1;
      for (auto& row : all.products)
        for (double& x : row) x /= products > 0 ? products : 1;
      return all;
    }
  };

  /// The time of a list of ops on a team of threads, in that of the layers' ops on one thread.
  struct team_share {
    double even = 0;     ///< if all launches were divided evenly
    double busiest = 0;  ///< of the thread that has most
    /// Adds a launch. Returns whether it is divided.
    constexpr bool add(step_on_cores const& of, group const& g, cost const& c, int samples,
                       int threads) {
      double const part = busiest_share<typename P::backend>(g, samples, threads),
                   time = of.time_of(c, double(samples) * part);
      even += time / threads;
      busiest += time * part;
      return part < 1;
    }
    constexpr void divide(double all) {
      if (all > 0) even /= all, busiest /= all;
    }
  };
  /// Estimated time for a sample, of a launch on this number of samples.
  constexpr double time_of(cost const& c, double samples) const {
    double const bytes = double(c.bytes), moved = double(flops_per_byte) * bytes;
    return double(c.flops) + (bytes * samples <= core_.cached ? core_.from_cache * moved : moved);
  }
  /// ns to divide a launch between n threads.
  constexpr double sharing(group const& g, int samples, int n) const {
    return core_.sharing +
           exchanged_bytes(g, samples, n, sizeof(typename P::value)) / core_.exchanged;
  }
  /// Adds the time of a layer. R is apart, since its launches are a list of their own.
  constexpr void add_time(int layer, compiled_model const& model) {
    chunk_cost const c =
        time_of_layer(P::work::costs()[layer], layer, P::samples,
                      P::some_drop ? recompute_place::ahead : recompute_place::nowhere,
                      time_by<typename P::partition>{});
    per_op_list<double>& t = stage_[model.stage_of_unit[layer]].time;
    t[op_list::forward] += double(c.forward) / core_.work;
    t[op_list::input_gradients] += double(c.backward_input) / core_.work;
    t[op_list::weight_gradients] += double(c.backward_weight) / core_.work;
    t[op_list::recompute] += double(c.recompute) / core_.work;
  }
  /// Measured times have what one stage reads of weights.
  constexpr void leave_out_weights() {
    double const each = reading(all_weights());
    for (stage_work& s : stage_)
      for (op_list l : every_op_list) {
        double const without = s.time[l] - s.weights[l] * each * additions(l, P::micro_batches);
        s.time[l] = without > 0 ? without : 0;
      }
  }
  constexpr double all_weights() const {
    double bytes = 0;
    for (stage_work const& s : stage_) bytes += s.weights[op_list::forward];
    return bytes;
  }
  /// ns for each byte of a product's weights: those that fit stay in the cache of the core.
  constexpr double reading(double weights) const {
    return weights <= core_.cached ? 0 : (1 - core_.cached / weights) / core_.bytes;
  }
  constexpr expected_step one_stage(int n) const {
    expected_step e;
    for (op_list l : every_op_list) {
      team_share const of = n == 1 ? on_one_[l] : on_all_[l];
      for (stage_work const& s : stage_) {
        double const time = runs * joined * s.time[l], read = one_reading(s, l),
                     own = l == op_list::weight_gradients ? read / n : read;
        e.time += time * of.busiest + own;
        e[core_loss::undivided] += time * (of.busiest - of.even);
        e[core_loss::values] += time * (of.even - on_one_[l].even / n);
        e[core_loss::weights] += own - read / n;
      }
    }
    for (stage_work const& s : stage_) e.time += s.update / n;
    if (n == 1) return e;
    e[core_loss::waking] = runs * waking_ + core_.starting;
    e[core_loss::exchange] = runs * exchange_;
    e.time += e[core_loss::waking] + e[core_loss::exchange];
    return e;
  }
  static constexpr int runs = P::micro_batches * accumulations / joined;
  /// Passes over a product's result in memory: several runs read gradients and write them.
  static constexpr int additions(op_list l, double times) {
    return l == op_list::weight_gradients && times > 1 ? 2 : 1;
  }
  /// ns in which a stage of the plan reads its weights for a micro-batch.
  constexpr double reading_of(int stage, op_list l) const {
    double weights = 0;
    for (int s = 0; s < stages; ++s)
      if (P::plan().stages[s].rank == P::plan().stages[stage].rank)
        weights += stage_[s].weights[op_list::forward];
    return stage_[stage].weights[l] * reading(weights) *
           additions(l, double(P::micro_batches) * accumulations) /
           (l == op_list::weight_gradients ? P::threads : 1);
  }
  /// ns of the rank whose stages take longest.
  constexpr double slowest_update() const {
    list<double, P::ranks> of_rank;
    double slowest = 0;
    for (int s = 0; s < stages; ++s) {
      double& mine = of_rank[P::plan().stages[s].rank];
      mine += stage_[s].update / P::threads;
      if (mine > slowest) slowest = mine;
    }
    return slowest;
  }
  /// ns in which one stage reads the weights of a part of it.
  constexpr double one_reading(stage_work const& s, op_list l) const {
    return runs * s.weights[l] * reading(all_weights()) * additions(l, runs);
  }
  static constexpr chunk_cost cost_of_stage(per_op_list<double> const& t) {
    bool const apart = P::recomputes_ahead;
    chunk_cost c{long(t[op_list::forward]),
                 long(t[op_list::input_gradients] + (apart ? 0 : t[op_list::recompute])),
                 long(t[op_list::weight_gradients])};
    c.recompute = apart ? long(t[op_list::recompute]) : 0;
    return c;
  }
  /// From a stage to the next: the values of a micro-batch.
  constexpr long bytes_handed_on(int stage) const {
    long bytes = 0;
    for (link_plan const& link : P::plan().links)
      if (link.from == P::plan().stages[stage].rank && link.values > bytes) bytes = link.values;
    return bytes;
  }
  constexpr long hop(int stage) const {
    return long(core_.handing_on + double(bytes_handed_on(stage)) / core_.exchanged);
  }
  /// Of an accumulation; where steps overlap, of its part in the period.
  static constexpr double makespan(problem_of_stages const& p) {
    double const time = double(simulate(p, P::table()).makespan);
    if constexpr (P::overlap == step_overlap::none)
      return time;
    else
      return time * P::plan().period.value() / double(P::timeline().makespan);
  }

  core_speed core_;
  stage_work stage_[stages]{};
  per_op_list<team_share> on_rank_{}, on_one_{}, on_all_{};
  double waking_ = 0, exchange_ = 0;  ///< ns of a run on all cores, for all launches
};

}  // namespace pp::detail
