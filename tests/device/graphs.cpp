// SPDX-License-Identifier: BSL-1.0
//
// Steps as graphs: the bits of the same steps by streams, in any order that edges allow; edges that
// are the transitive reduction of what data, slots and the order of a rank ask for; and what cannot
// be captured says so.
#include <algorithm>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;

struct Regression : Model<Input<5>, Linear<12>, ReLU, Linear<12>, RMSNorm, SiLU, Linear<3>, MSE> {};

/// A layer that leaves the numbers of its nodes when it is captured: y = x + w[c].
struct mark {
  enum kind { forward, input_gradient, weight_gradient } kind;
  int layer, node;
};
std::vector<mark> marks;
bool waits = false;   // whether a launch waits for its stream, as none may under capture
bool throws = false;  // whether a launch throws under capture
bool has_run[3][8];   // whether the function of a layer has been called, and has loaded its code
bool loads_under_capture = false;

template <int Layer>
struct Marked {
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr int parameters = 1;
  static constexpr custom::parameter parameter(int, sample_shape in) {
    return {1, in.columns(), "shift", {distribution::constant, 0.1f}, false};
  }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.y[i] = T(float(a.x[i]) + float(a.parameter[0][i % a.in.columns()]));
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) a.dx[i] = a.dy[i];
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.gradient[0][i % a.in.columns()] += float(a.dy[i]);
  }
  static void left(enum mark::kind kind, cudaStream_t on) {
    if (on->in != nullptr) marks.push_back({kind, Layer, *on->last.begin()});
    loads_under_capture = loads_under_capture || (on->in != nullptr && !has_run[kind][Layer]);
    has_run[kind][Layer] = true;
    if (waits) (void)cudaStreamSynchronize(on);
    if (throws && on->in != nullptr) throw 1;
  }
  template <class T>
  static void forward(custom::forward<T> const& a, cudaStream_t on) {
    on->put([a] { forward(a); });
    left(mark::forward, on);
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a, cudaStream_t on) {
    on->put([a] { input_gradient(a); });
    left(mark::input_gradient, on);
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a, cudaStream_t on) {
    on->put([a] { weight_gradient(a); });
    left(mark::weight_gradient, on);
  }
};
struct Path
    : Model<Input<4>, Custom<Marked<0>>, Custom<Marked<1>>, Custom<Marked<2>>, Custom<Marked<3>>,
            Custom<Marked<4>>, Custom<Marked<5>>, Custom<Marked<6>>, Custom<Marked<7>>, MSE> {};

/// closure[i][j]: whether j comes after i. Edges lead from lower to higher numbers, or in `order`.
using relation = std::vector<std::vector<bool>>;
relation closure_of(std::vector<std::vector<int>> const& before, std::vector<int> const& order) {
  relation r(before.size(), std::vector<bool>(before.size()));
  for (int const to : order)
    for (int const from : before[std::size_t(to)]) {
      r[std::size_t(from)][std::size_t(to)] = true;
      for (std::size_t i = 0; i < r.size(); ++i)
        if (r[i][std::size_t(from)]) r[i][std::size_t(to)] = true;
    }
  return r;
}

/// A part of an action: what is published at once.
struct part {
  enum mark::kind kind;
  int chunk, micro_batch;
  friend bool operator==(part const&, part const&) = default;
};

/// What must come before what in a step: the order of a rank, values and gradients of neighbours,
/// and slots that have been read.
struct dependencies {
  std::vector<part> parts;
  relation after;

  int find(part const& p) const {
    auto const at = std::find(parts.begin(), parts.end(), p);
    return at == parts.end() ? -1 : int(at - parts.begin());
  }
  explicit dependencies(detail::pipeline_description const& d) {
    bool const splits =
        d.chunk[0].set_for(0).programs[int(detail::program::backward)].launches == nullptr;
    std::vector<std::vector<int>> before;
    auto const read_by = [&](int chunk, int mb) {  // the last part that reads what a chunk received
      return part{splits ? mark::weight_gradient : mark::input_gradient, chunk, mb};
    };
    for (int r = 0; r < d.ranks; ++r)
      for (schedules::action const& a : d.rank[r].training) {
        auto const add = [&](enum mark::kind kind) {
          before.emplace_back();
          if (!parts.empty() && d.chunk[parts.back().chunk].rank == r)
            before.back().push_back(int(parts.size()) - 1);
          parts.push_back({kind, a.chunk, a.micro_batch});
        };
        if (a.kind == schedules::action_kind::forward) add(mark::forward);
        if (detail::makes_input_gradient(a.kind)) add(mark::input_gradient);
        if (splits && detail::makes_weight_gradient(a.kind)) add(mark::weight_gradient);
      }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto const [kind, c, mb] = parts[i];
      auto const needs = [&](part const& p) {
        if (p.chunk >= 0 && p.chunk < d.chunks && p.micro_batch >= 0) before[i].push_back(find(p));
      };
      if (kind == mark::forward) {
        needs({mark::forward, c - 1, mb});
        needs(read_by(c + 1, mb - d.chunk[c].rings.boundary.slots));
      } else if (kind == mark::input_gradient) {
        needs({mark::input_gradient, c + 1, mb});
        needs(read_by(c - 1, mb - d.chunk[c].rings.gradient.slots));
      }
    }
    // A topological order of the parts.
    std::vector<int> order;
    std::vector<bool> is_done(parts.size());
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (!is_done[i] && std::all_of(before[i].begin(), before[i].end(),
                                       [&](int b) { return is_done[std::size_t(b)]; }))
          order.push_back(int(i)), is_done[i] = goes_on = true;
    }
    REQUIRE(order.size() == parts.size());
    after = closure_of(before, order);
  }
};

/// The graph of a trainer's step, and the marks that its capture left.
template <class Trainer>
fake_gpu::graph captured_step(Trainer& t) {
  laws::sample_batch<Trainer> const data(1);
  t.step(data.view());
  marks.clear();
  t.step(data.view());
  REQUIRE(gpu.last_captured != nullptr);
  return *gpu.last_captured;
}
relation closure_of(fake_gpu::graph const& g) {
  std::vector<std::vector<int>> before;
  std::vector<int> order;
  for (fake_gpu::node const& n : g.nodes) {
    order.push_back(n.number);
    before.emplace_back(n.after.begin(), n.after.end());
  }
  return closure_of(before, order);
}
/// Edges that a path of others implies.
int redundant(fake_gpu::graph const& g, relation const& after) {
  int count = 0;
  for (fake_gpu::node const& n : g.nodes)
    for (int const from : n.after)
      count += std::any_of(n.after.begin(), n.after.end(),
                           [&](int other) { return after[std::size_t(from)][std::size_t(other)]; });
  return count;
}

/// law: nodes are ordered exactly as their parts of actions are, and no edge is redundant
template <class... Options>
void has_the_edges_of_its_schedule() {
  using trainer = Pipeline<Path, on_host::Device, ByCount, MicroBatchSize<1>, Options...>;
  auto const& plan = trainer::plan();
  INFO(plan.schedule << ", " << plan.stage_count << " stages on " << plan.rank_count << " ranks, "
                     << plan.micro_batches << " micro-batches");
  trainer t;
  fake_gpu::graph const g = captured_step(t);
  relation const found = closure_of(g);
  CHECK(redundant(g, found) == 0);

  detail::pipeline_description const d = trainer::compiled::description();
  dependencies const expected(d);
  // The micro-batch of a mark: a chunk's rank lists its micro-batches in this order.
  struct at {
    int part, node, priority;
  };
  std::vector<at> places;
  for (int layer = 0; layer < 8; ++layer) {
    int chunk = 0;
    while (plan.stages[chunk].end_layer <= layer) ++chunk;
    for (auto kind : {mark::forward, mark::input_gradient, mark::weight_gradient}) {
      std::vector<int> nodes;
      for (mark const& m : marks)
        if (m.layer == layer && m.kind == kind) nodes.push_back(m.node);
      std::size_t next = 0;
      for (part const& p : expected.parts) {
        if (p.chunk != chunk || p.kind != kind || next == nodes.size()) continue;
        int const node = nodes[next++];
        places.push_back({expected.find(p), node, g.nodes[std::size_t(node)].priority});
      }
    }
  }
  REQUIRE(places.size() >= std::size_t(2 * plan.micro_batches * 8 - plan.micro_batches));
  long wrong = 0, ordered = 0;
  for (at const& a : places)
    for (at const& b : places) {
      if (a.part == b.part) continue;
      bool const is = found[std::size_t(a.node)][std::size_t(b.node)];
      wrong += is != expected.after[std::size_t(a.part)][std::size_t(b.part)];
      ordered += is;
    }
  CHECK(wrong == 0);
  CHECK(ordered > 0);
  // Gradients of inputs before outputs before gradients of weights, where ranks share the device.
  for (at const& a : places) {
    enum mark::kind const kind = expected.parts[std::size_t(a.part)].kind;
    int const wanted = plan.rank_count == 1           ? 0
                       : kind == mark::input_gradient ? -5
                       : kind == mark::forward        ? -2
                                                      : 0;
    wrong += a.priority != wanted;
  }
  CHECK(wrong == 0);
}

/// A trainer by graphs and one by streams: steps at changing rates, of changing lengths,
/// accumulated ones, and evaluations between them.
template <class Model, class... Options>
void has_the_bits_of_streams() {
  using by_graph = Pipeline<Model, on_host::Device, AdamW, Averaging<9, 10>, Options...>;
  using by_streams =
      Pipeline<Model, on_host::Device, AdamW, Averaging<9, 10>, NoGraphs, Options...>;
  for (preference p : {preference::awaited, preference::last, preference::first}) {
    gpu.prefers = p;
    gpu.graph_launches = 0;
    typename by_graph::settings a{.seed = 5, .clip_value = 0.02, .clip_norm = 0.1};
    typename by_streams::settings b{.seed = 5, .clip_value = 0.02, .clip_norm = 0.1};
    by_graph x(a);
    by_streams y(b);
    long launches = 0;
    for (int i = 0; i < 9; ++i) {
      laws::sample_batch<by_graph> const data(std::uint64_t(i) + 1);
      long const samples = by_graph::samples - (i == 4 || i == 5 ? 1 : 0);
      auto const ours = data.view(samples);
      auto const theirs = data.template view<by_streams>(samples);
      double const rate = 0.01 / (1 + i);
      for (int k = 0; k < i % 3; ++k)
        CHECK(laws::same_bits(x.accumulate(ours).loss, y.accumulate(theirs).loss));
      long const before = gpu.count.launches;
      auto const r = x.step(ours, rate);
      launches = gpu.count.launches - before;
      auto const s = y.step(theirs, rate);
      CHECK(laws::same_bits(r.loss, s.loss));
      CHECK(laws::same_bits(r.gradient_norm, s.gradient_norm));
      CHECK(laws::same_numbers(laws::snapshot(x).values, laws::snapshot(y).values));
      CHECK(laws::same_numbers(laws::snapshot(x).gradients, laws::snapshot(y).gradients));
      CHECK(laws::same_bits(x.evaluate(ours), y.evaluate(theirs)));
      x.swap_averages(), y.swap_averages();
      CHECK(laws::same_numbers(laws::snapshot(x).values, laws::snapshot(y).values));
      x.swap_averages(), y.swap_averages();
    }
    CHECK(launches == 0);
    CHECK(gpu.graph_launches >= 8);
  }
  gpu.prefers = preference::awaited;
}

}  // namespace

TEST_CASE("a replayed step has the bits of one by streams", "[cuda]") {
  has_the_bits_of_streams<Regression, FP32, MicroBatches<3>, MicroBatchSize<2>>();
  has_the_bits_of_streams<Regression, FP32, Stages<2>, MicroBatches<3>, MicroBatchSize<2>>();
  has_the_bits_of_streams<laws::Everything, BF16, Stages<4>, ZeroBubbleV, RecomputeAll,
                          MicroBatches<4>, MicroBatchSize<2>>();
}

TEST_CASE("a captured step has the edges of its schedule, and no other", "[cuda]") {
  has_the_edges_of_its_schedule<Stages<1>, MicroBatches<2>>();
  has_the_edges_of_its_schedule<Stages<2>, MicroBatches<1>>();
  has_the_edges_of_its_schedule<Stages<4>, GPipe, MicroBatches<3>>();
  has_the_edges_of_its_schedule<Stages<4>, OneFOneB, MicroBatches<6>>();
  has_the_edges_of_its_schedule<Stages<8>, ZeroBubbleH1, MicroBatches<5>>();
  has_the_edges_of_its_schedule<Stages<8>, ZeroBubbleV, MicroBatches<4>>();
  has_the_edges_of_its_schedule<Stages<4>, Interleaved<2>, MicroBatches<4>>();
}

TEST_CASE("edges that paths imply are found", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::size_t const nodes = 2 + seed % 17;
    std::vector<cuda::graph_edge> edges;
    std::vector<std::vector<int>> before(nodes);
    std::vector<int> order;
    // Numbers that are no order of the nodes.
    auto const number = [&](std::size_t i) { return (i * 7 + seed) % nodes; };
    if (nodes % 7 == 0) continue;
    for (std::size_t to = 0; to < nodes; ++to) {
      order.push_back(int(number(to)));
      for (std::size_t from = 0; from < to; ++from)
        if (laws::uniform(seed, to, from) > 0.2) {
          edges.push_back({number(from), number(to)});
          before[number(to)].push_back(int(number(from)));
        }
    }
    relation const after = closure_of(before, order);
    std::vector<std::size_t> expected;
    for (std::size_t e = 0; e < edges.size(); ++e)
      for (int const other : before[edges[e].to])
        if (after[edges[e].from][std::size_t(other)]) {
          expected.push_back(e);
          break;
        }
    auto found = cuda::redundant_edges(nodes, edges);
    std::sort(found.begin(), found.end());
    CHECK(found == expected);
  }
}

TEST_CASE("a skipped step is skipped by a graph, too", "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>>;
  using streams =
      Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>, NoGraphs>;
  trainer t({.seed = 3});
  streams s({.seed = 3});
  laws::sample_batch<trainer> data(1);
  for (auto& label : data.labels) label = 40;
  int skipped = 0;
  for (int i = 0; i < 12; ++i) {
    auto const a = t.step(data.view()), b = s.step(data.view<streams>());
    CHECK(a.skipped == b.skipped);
    CHECK(a.loss_scale == b.loss_scale);
    CHECK(t.steps() == s.steps());
    skipped += a.skipped;
  }
  CHECK(skipped > 3);
  CHECK(t.steps() > 0);
  CHECK(laws::same_numbers(laws::snapshot(t).values, laws::snapshot(s).values));
  // A step that no scale could save is rejected, and found by streams.
  t.parameters().back().values[0] = HUGE_VALF;
  t.parameters_changed();
  long const steps = t.steps();
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  CHECK(t.steps() == steps);
}

TEST_CASE("runs that come again are graphs, others are not", "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP32, MicroBatches<6>, MicroBatchSize<2>>;
  trainer t;
  CHECK(t.runs_on() == "a CPU, steps as CUDA graphs");
  laws::sample_batch<trainer> const data(1);
  std::vector<float> outputs(std::size_t(trainer::samples * trainer::outputs_per_sample));
  gpu.captures = gpu.graph_launches = 0;
  t.step(data.view());
  CHECK(gpu.captures == 0);
  t.step(data.view());
  t.step(data.view());
  CHECK(gpu.captures == 1);
  CHECK(gpu.graph_launches == 2);
  for (int i = 0; i < 3; ++i) t.watch(data.view(), [](launch_seen const&) {});
  for (int i = 0; i < 3; ++i) t.forward(data.view(), outputs);
  CHECK(gpu.captures == 1);
  // Lengths of mini-batches, of which the first eight keep their graphs.
  for (long samples = 1; samples < trainer::samples; ++samples) t.evaluate(data.view(samples));
  CHECK(gpu.captures == 1);
  for (int i = 0; i < 2; ++i)
    for (long samples = 1; samples < trainer::samples; ++samples) t.evaluate(data.view(samples));
  CHECK(gpu.graphs <= 8);
  for (long samples = 1; samples < trainer::samples; ++samples)
    for (int i = 0; i < 3; ++i) t.evaluate(data.view(samples));
  CHECK(gpu.graphs == 8);
  long const captures = gpu.captures;
  t.step(data.view());
  CHECK(gpu.captures == captures);

  trainer timed({.runtime = {.timeline = true}});
  for (int i = 0; i < 3; ++i) timed.step(data.view());
  CHECK(gpu.captures == captures);
  CHECK(timed.executed(0).size() == 12);
}

TEST_CASE("steps run by streams where the driver is too old for graphs", "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP32, MicroBatches<2>>;
  gpu.driver = 12020;
  gpu.captures = 0;
  trainer t;
  CHECK(t.runs_on() == "a CPU, steps by streams: the driver is older than CUDA 12.4");
  laws::sample_batch<trainer> const data(1);
  for (int i = 0; i < 3; ++i) t.step(data.view());
  CHECK(gpu.captures == 0);
  gpu.driver = 13000;
}

TEST_CASE("a step of more kernels than a graph may have runs by streams", "[cuda]") {
  using small = Pipeline<Regression, on_host::Device, FP32, MicroBatches<2>, Graphs<40>>;
  using large = Pipeline<Regression, on_host::Device, FP32, MicroBatches<20>, Graphs<40>>;
  gpu.captures = 0;
  small a;
  CHECK(a.runs_on() == "a CPU, steps as CUDA graphs");
  large b;
  INFO(b.runs_on());
  CHECK(b.runs_on().find("a CPU, steps by streams: ") == 0);
  CHECK(b.runs_on().find(" kernels, and a graph has at most 40") != std::string::npos);
  laws::sample_batch<large> const data(1);
  for (int i = 0; i < 3; ++i) b.step(data.view());
  CHECK(gpu.captures == 0);
}

TEST_CASE("a launch that cannot be captured fails with a reason, and leaves nothing", "[cuda]") {
  using trainer = Pipeline<Path, on_host::Device, ByCount, Stages<2>, MicroBatches<2>>;
  {
    trainer plain({.seed = 3}), troubled({.seed = 3});
    laws::sample_batch<trainer> const data(1);
    waits = true;
    for (trainer* t : {&plain, &troubled}) t->step(data.view());  // by streams: they may wait
    CHECK_THROWS_WITH(troubled.step(data.view()),
                      Catch::Contains("not under capture") && Catch::Contains("NoGraphs"));
    CHECK(gpu.is_idle());
    CHECK_FALSE(gpu.is_capturing());
    CHECK(troubled.steps() == 1);
    CHECK_THROWS_AS(troubled.step(data.view()), error);
    waits = false;
    throws = true;
    CHECK_THROWS_AS(troubled.step(data.view()), int);
    CHECK(gpu.is_idle());
    CHECK_FALSE(gpu.is_capturing());
    throws = false;
    for (int i = 0; i < 2; ++i)
      CHECK(laws::same_bits(troubled.step(data.view()).loss, plain.step(data.view()).loss));
    CHECK(laws::same_numbers(laws::snapshot(plain).values, laws::snapshot(troubled).values));
  }
  CHECK(gpu.graphs == 0);
}

TEST_CASE("a step that failed half-way is not captured when it comes again", "[cuda]") {
  using trainer = Pipeline<Path, on_host::Device, ByCount, Stages<2>, MicroBatches<2>>;
  laws::sample_batch<trainer> const data(1);
  for (long call = 12; call < 60; call += 12) {
    trainer t;
    for (auto& of_kind : has_run)
      for (bool& x : of_kind) x = false;
    gpu.failing = gpu.calls + call;
    CHECK_THROWS_AS(t.step(data.view()), error);
    gpu.failing = -1;
    CHECK_FALSE(has_run[mark::weight_gradient][0]);
    long const captures = gpu.captures;
    for (int i = 0; i < 2; ++i) t.step(data.view());
    CHECK(gpu.captures == captures + 1);
    CHECK_FALSE(loads_under_capture);
  }
}

TEST_CASE("whichever call of CUDA fails in a captured or replayed step, the step is whole or not",
          "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>>;
  laws::sample_batch<trainer> const data(1), other(2);
  trainer plain({.seed = 3});
  plain.step(data.view());
  double const second = plain.step(other.view()).loss;
  for (int captured = 0; captured < 2; ++captured) {
    long rejected = 0, broken = 0, call = 0;
    for (bool failed = true; failed; ++call) {
      trainer t({.seed = 3});
      t.step(data.view());
      // By the time of a replay another shape has its graph.
      if (captured)
        for (int i = 0; i < 2; ++i) t.gradients(data.view());
      gpu.failing = gpu.calls + call;
      failed = false;
      try {
        captured ? t.gradients(data.view()) : t.step(other.view());
      } catch (error const&) {
        failed = true;
        CHECK(gpu.is_idle());
        CHECK_FALSE(gpu.is_capturing());
      }
      gpu.failing = -1;
      if (!failed) break;
      try {
        double const loss = t.step(other.view()).loss;  // throws if broken
        CHECK(laws::same_bits(loss, second));
        ++rejected;
      } catch (error const& e) {
        CHECK(std::string(e.what()).find("broken") != std::string::npos);
        ++broken;
      }
    }
    CHECK(rejected > (captured ? 10 : 40));
    CHECK(broken <= (captured ? 0 : 8));
  }
}

TEST_CASE("the stand-in refuses what a capture does not allow", "[cuda]") {
  cuda::stream a, b, c;
  cuda::event e, f, outside;
  cudaGraph_t g = nullptr;
  auto const begins = [&](cudaStream_t s) {
    return cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
  };
  int done = 0;
  SECTION("edges are streams and events") {
    REQUIRE(begins(a) == cudaSuccess);
    static_cast<cudaStream_t>(a)->put([&] { done = done * 10 + 1; });
    CHECK(cudaEventRecord(e, a) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(b, e, 0) == cudaSuccess);
    static_cast<cudaStream_t>(b)->put([&] { done = done * 10 + 2; });
    static_cast<cudaStream_t>(a)->put([&] { done = done * 10 + 3; });
    CHECK(cudaEventRecord(f, b) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(a, f, 0) == cudaSuccess);
    static_cast<cudaStream_t>(a)->put([&] { done = done * 10 + 4; });
    REQUIRE(cudaStreamEndCapture(a, &g) == cudaSuccess);
    CHECK(g->edges() == 4);
    CHECK(done == 0);
    cudaGraphExec_t x = nullptr;
    REQUIRE(cudaGraphInstantiate(&x, g, 0) == cudaSuccess);
    for (preference p : {preference::awaited, preference::last}) {
      gpu.prefers = p;
      done = 0;
      CHECK(cudaGraphLaunch(x, c) == cudaSuccess);
      CHECK(cudaStreamSynchronize(c) == cudaSuccess);
      CHECK(done == (p == preference::last ? 1324 : 1234));
    }
    gpu.prefers = preference::awaited;
    CHECK(cudaEventSynchronize(e) == cudaErrorCapturedEvent);
    cudaGraphExecDestroy(x);
  }
  SECTION("a stream that is not joined") {
    REQUIRE(begins(a) == cudaSuccess);
    CHECK(cudaEventRecord(e, a) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(b, e, 0) == cudaSuccess);
    static_cast<cudaStream_t>(b)->put([] {});
    CHECK(cudaStreamEndCapture(a, &g) == cudaErrorStreamCaptureUnjoined);
  }
  SECTION("an event of another time") {
    CHECK(cudaEventRecord(outside, b) == cudaSuccess);
    REQUIRE(begins(a) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(a, outside, 0) == cudaErrorStreamCaptureIsolation);
    CHECK(cudaMemsetAsync(&done, 0, sizeof done, a) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(a, &g) == cudaErrorStreamCaptureInvalidated);
  }
  SECTION("waits, allocations, copies that wait") {
    void* p = nullptr;
    for (auto const& call : std::vector<std::function<cudaError_t()>>{
             [&] { return cudaStreamSynchronize(b); }, [&] { return cudaDeviceSynchronize(); },
             [&] { return cudaEventSynchronize(e); }, [&] { return cudaMalloc(&p, 8); },
             [&] { return cudaMallocHost(&p, 8); },
             [&] { return cudaMemcpy(&done, &done, sizeof done, cudaMemcpyDeviceToHost); },
             [&] { return begins(a); }}) {
      REQUIRE(begins(a) == cudaSuccess);
      CHECK(call() == cudaErrorStreamCaptureUnsupported);
      CHECK(cudaStreamEndCapture(a, &g) == cudaErrorStreamCaptureInvalidated);
      CHECK(g == nullptr);
    }
  }
  SECTION("an end without a begin") {
    CHECK(cudaStreamEndCapture(a, &g) == cudaErrorStreamCaptureUnmatched);
  }
  if (g != nullptr) cudaGraphDestroy(g);
  (void)cudaGetLastError();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}
