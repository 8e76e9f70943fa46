// SPDX-License-Identifier: BSL-1.0
//
// The memory plan: every launch finds what it reads, regions do not overlap, and the bytes of the
// plan add up.
#include "catch.hpp"

#include <algorithm>
#include <vector>

#include "laws/centered.hpp"
#include "laws/random_model.hpp"
#include "laws/schedules.hpp"
#include "passes/paper_run.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

template <class M, class... Options>
using compiled = compiled_pipeline<
    M, option_set<PortableHost, AdamW, MicroBatches<5>, MicroBatchSize<3>, Options...>>;

/// Parameters lie apart, the trained ones first; the ranges of the update cover those without a
/// gap, each of parameters that are trained alike.
template <class C>
void ranges_cover_what_is_trained() {
  for (int s = 0; s < C::stages; ++s) {
    chunk_description const& c = C::memory().chunks[s];
    std::vector<std::pair<long, long>> lies, buffers;
    for (parameter_place const& p : c.parameters) {
      long const end = p.offset + p.elements() * long(sizeof(typename C::element));
      if (p.is_buffer) {
        buffers.push_back({p.offset, end});
        CHECK(p.is_committed() == (p.offset < c.state - c.sums));
        continue;
      }
      lies.push_back({p.offset, end});
      CHECK(p.trained == (p.offset < c.sizes.trained));
      if (!p.trained) continue;
      detail::parameter const& is = C::passes::forward.parameters[p.index];
      int found = 0;
      for (update_range const& range : c.updates) {
        if (p.offset < range.begin * long(sizeof(typename C::element)) ||
            end > range.end * long(sizeof(typename C::element)))
          continue;
        ++found;
        CHECK(range.rate_scale == is.rate_scale);
        CHECK(range.decay_scale == is.decay_scale);
      }
      CHECK(found == 1);
    }
    for (auto* const all : {&lies, &buffers}) {
      std::sort(all->begin(), all->end());
      for (std::size_t i = 1; i < all->size(); ++i) CHECK((*all)[i - 1].second <= (*all)[i].first);
    }
    for (int u = 0; u < c.updates.count; ++u) {
      CHECK(c.updates[u].begin == (u > 0 ? c.updates[u - 1].end : 0));
      CHECK(c.updates[u].begin * long(sizeof(typename C::element)) % detail::alignment == 0);
    }
    CHECK((c.updates.count > 0 ? c.updates[c.updates.count - 1].end : 0) *
              long(sizeof(typename C::element)) ==
          c.sizes.trained);
  }
}

/// The parts of each rank's arena lie side by side, aligned, and end where the plan says.
template <class C>
void parts_do_not_overlap() {
  for (int r = 0; r < C::ranks; ++r) {
    std::vector<std::pair<long, long>> parts;
    bool aligned = true;
    rank_description const& rank = C::memory().rank[r];
    auto const add = [&](long offset, long bytes) {
      aligned = aligned && offset % detail::alignment == 0 && bytes % detail::alignment == 0;
      if (bytes > 0) parts.push_back({offset, offset + bytes});
    };
    long most_scratch = 0;
    for (int s = 0; s < C::stages; ++s) {
      chunk_description const& c = C::memory().chunks[s];
      if (c.rank != r) continue;
      add(c.values, c.sizes.parameters);
      add(c.buffers, c.sizes.buffers);
      add(c.gradients, c.sizes.trained);
      add(c.sums, C::plan().stages[s].buffer_bytes - c.sizes.buffers);
      add(c.state, C::plan().stages[s].optimizer_bytes);
      add(c.transposed, C::plan().stages[s].transposed_bytes);
      for (ring const& of : {c.keeping.records, c.dropping.records, c.rings.pending,
                             c.rings.boundary, c.rings.gradient})
        add(C::memory().holders[c.first_holder].values + of.offset, of.bytes());
    }
    [&]<int... S>(std::integer_sequence<int, S...>) {
      ((C::memory().chunks[S].rank == r
            ? void(most_scratch = std::max(most_scratch, C::template stage<S>::scratch_bytes()))
            : void()),
       ...);
    }(std::make_integer_sequence<int, C::stages>{});
    add(rank.scratch, most_scratch);
    add(rank.workspace, C::workspace);
    auto const numbers = [](long count) { return detail::align_up(count * long(sizeof(double))); };
    for (int i = 0; i <= C::description().inputs; ++i)
      if (rank.staging[i] >= 0)
        add(rank.staging[i], detail::align_up(C::step::batch_bytes(C::passes::forward, i)));
    if (C::memory().chunks[C::stages - 1].rank == r) {
      add(rank.row_losses, numbers(C::step::loss_rows(C::passes::forward)));
      add(rank.losses, numbers(C::micro_batches));
    }
    add(rank.executed, detail::align_up(long(sizeof(executed_action)) *
                                        std::max(rank.training.count, rank.evaluation.count)));
    add(rank.blocks, detail::align_up(rank.block_count * long(sizeof(gradient_block))));
    for (int s = 0; s < C::stages; ++s)
      if (chunk_description const& c = C::memory().chunks[s]; c.rank == r)
        add(c.norms, numbers(2L * c.parameters.count));
    std::sort(parts.begin(), parts.end());
    long end = 0;
    for (auto const& [begin, stop] : parts) {
      aligned = aligned && begin == end;  // no gap either: every byte is somebody's
      end = stop;
    }
    CHECK(aligned);
    CHECK(end == C::plan().rank_bytes[r]);
  }
}

template <class C>
void bytes_add_up() {
  auto of_rank = std::vector<long>(std::size_t(C::ranks));
  long parameters = 0;
  for (int s = 0; s < C::stages; ++s) {
    stage_plan const& p = C::plan().stages[s];
    CHECK(p.bytes == p.parameter_bytes + p.gradient_bytes + p.optimizer_bytes + p.transposed_bytes +
                         p.saved_bytes + p.boundary_bytes + p.buffer_bytes);
    CHECK(p.parameter_bytes >= p.parameters * long(sizeof(typename C::element)));
    CHECK(p.gradient_bytes >= p.trained * long(sizeof(typename C::element)));
    CHECK(p.optimizer_bytes == 2 * p.gradient_bytes);
    of_rank[std::size_t(p.rank)] += p.bytes;
    parameters += p.parameters;
  }
  CHECK(parameters == C::plan().parameters);
  long total = 0;
  for (int r = 0; r < C::ranks; ++r) {
    CHECK(C::memory().rank[r].scratch == of_rank[std::size_t(r)]);
    total += C::plan().rank_bytes[r];
  }
  CHECK(total == C::plan().bytes);
}

template <class C>
void check() {
  ranges_cover_what_is_trained<C>();
  if constexpr (C::some_keep) {
    paper::run<typename C::passes> const run;
    CHECK(run.problem == "");
    CHECK(run.launches > 0);
  }
  if constexpr (C::some_drop) {
    paper::run<typename C::passes, true> const run;
    CHECK(run.problem == "");
    CHECK(run.launches > 0);
  }
  parts_do_not_overlap<C>();
  bytes_add_up<C>();
}

template <unsigned Seed>
void random_model() {
  INFO("seed " << Seed);
  using model = laws::RandomModel<Seed, 3 + int(Seed) % 7>;
  check<compiled<model, Stages<2 + int(Seed) % (model::graph.size.units - 1)>>>();
  check<compiled<model, Stages<1 + int(Seed) % model::graph.size.units>, ByCount,
                 laws::LateWeights>>();
  check<compiled<model, Stages<2 + int(Seed) % (model::graph.size.units - 1)>,
                 RecomputeAllButLast>>();
}

struct EndsInPositions : Model<Input<3>, Linear<5>, Tanh, Linear<4>, Positions, Positions, MSE> {};
/// Backward reads the statistics of a norm, not its result: where a stage ends with one, that
/// result is made again for nobody.
struct EndsInNorms : Model<Input<3>, Linear<5>, LayerNorm, Linear<4>, RMSNorm, Linear<2>, MSE> {};
struct Skips : Model<Input<3>, Linear<5>, Stash<"a">, Tanh, Linear<5>, Stash<"b">, GELUTanh,
                     Pop<"a">, Linear<5>, Pop<"b">, Linear<2>, Pop<"a", Concat>, MSE> {};
/// Each kind of training in turn, and what is not trained at the start, in the middle and at the
/// end.
struct ManyGroups
    : Model<Tokens<11, 5>, Frozen<Embedding<6>, Positions, LayerNorm>, Linear<4>,
            Group<LearningRate<1, 2>, Residual<LayerNorm, Linear<4>>, Frozen<Attention<2>>,
                  Linear<7>>,
            Tanh,
            Group<WeightDecay<0>, Linear<4>, Residual<Frozen<Linear<5>>, GELUTanh, Linear<4>>>,
            Frozen<Linear<11>>, CrossEntropy> {};
/// Buffers behind a stage's parameters, one of them a constant, and in a stage of their own.
struct Buffers : Model<Input<2, 3>, Custom<laws::Centered>, Linear<4>,
                       Frozen<Custom<laws::Centered>>, Custom<laws::Centered>, Linear<2>, MSE> {};
struct Gpt : Model<Tokens<11, 5>, Embedding<6>, Positions,
                   Repeat<3, Residual<LayerNorm, Attention<2>>,
                          Residual<LayerNorm, Linear<24>, GELUTanh, Linear<6>>>,
                   LayerNorm, Linear<11>, CrossEntropy> {};

}  // namespace

TEST_CASE("every launch of a random model finds its operands", "[passes]") {
  random_model<21>(), random_model<22>(), random_model<23>(), random_model<24>(),
      random_model<25>(), random_model<26>();
}
TEST_CASE("every launch of models with special cuts finds its operands", "[passes]") {
  check<compiled<EndsInPositions, Stages<5>>>();
  check<compiled<EndsInPositions, Stages<3>, Cut<2, 4>, laws::LastWeights>>();
  check<compiled<ManyGroups, Stages<1>>>();
  check<compiled<ManyGroups, Stages<4>>>();
  check<compiled<ManyGroups, Stages<4>, laws::LateWeights>>();
  check<compiled<ManyGroups, Stages<ManyGroups::graph.size.units>>>();
  check<compiled<Gpt, Stages<5>>>();
  check<compiled<Gpt, Stages<10>, GPipe>>();
  check<compiled<Gpt, Stages<6>, laws::ManyChunks<schedules::placement::loop, 2>>>();
  check<compiled<Skips, Stages<7>>>();
  check<compiled<Buffers, Stages<1>>>();
  check<compiled<Skips, Stages<4>, laws::LastWeights>>();
}
TEST_CASE("every launch finds its operands where values are made again", "[passes]") {
  check<compiled<Gpt, Stages<5>, RecomputeAll>>();
  check<compiled<Gpt, Stages<1>, RecomputeAll>>();
  check<compiled<Gpt, Stages<4>, Recompute<op_kind::attention, op_kind::map>>>();
  check<compiled<Gpt, Stages<3>, Recompute<op_kind::matmul, op_kind::bias>, laws::LastWeights>>();
  check<compiled<Skips, Stages<5>, RecomputeAllButLast, laws::LateWeights>>();
  check<compiled<EndsInPositions, Stages<5>, RecomputeAll, laws::LastWeights>>();
  check<compiled<Buffers, Stages<5>, RecomputeAll, laws::LastWeights>>();
  check<compiled<EndsInNorms, Stages<3>, Cut<2, 4>, RecomputeAll, laws::LastWeights>>();
}

TEST_CASE("every launch finds its operands where values are made again ahead", "[passes]") {
  check<compiled<Gpt, Stages<5>, RecomputeAll, RecomputeAhead<GPipe>>>();
  check<compiled<Gpt, Stages<4>, Recompute<op_kind::attention, op_kind::map>,
                 RecomputeAhead<ZeroBubbleH1>>>();
  check<compiled<Skips, Stages<5>, RecomputeAllButLast, RecomputeAhead<GPipe>>>();
  check<compiled<EndsInPositions, Stages<5>, RecomputeAll, RecomputeAhead<GPipe>>>();
  check<compiled<Buffers, Stages<5>, RecomputeAll, RecomputeAhead<ZeroBubbleH1>>>();
  check<compiled<EndsInNorms, Stages<3>, Cut<2, 4>, RecomputeAll, RecomputeAhead<GPipe>>>();
}

TEST_CASE("values share scratch where their lifetimes allow it", "[passes]") {
  detail::scratch_block live[8];
  detail::scratch_allocator room{live};
  CHECK(room.allocate(64, 0, 2) == 0);
  CHECK(room.allocate(128, 0, 1) == 64);
  CHECK(room.allocate(64, 1, 3) == 192);  // the second is still read by launch 1
  CHECK(room.allocate(128, 2, 2) == 64);  // its place is free now
  CHECK(room.allocate(64, 3, 3) == 0);
  CHECK(room.peak == 256);
}

TEST_CASE("1F1B keeps as many records as micro-batches are in flight", "[passes]") {
  using one = compiled<Gpt, Stages<4>>;
  using gpipe = compiled<Gpt, Stages<4>, GPipe>;
  for (int s = 0; s < 4; ++s) {
    CHECK(one::memory().chunks[s].keeping.records.slots == std::min(5, 4 - s));
    CHECK(gpipe::memory().chunks[s].keeping.records.slots == 5);
  }
  CHECK(one::plan().peak_in_flight == 4);
}

TEST_CASE("a description has its launches wherever it is asked for", "[passes]") {
  using alone = Pipeline<Model<Input<7>, Linear<9>, Linear<5>, CrossEntropy>, MicroBatches<2>,
                         AdamW>::compiled;
  auto launches = std::vector<int>(alone::groups);
  // What initialises a reference is what a compiler evaluates, if it can.
  for (program_view const& p : alone::description().chunk[0].keeping.programs)
    for (int i = 0; i < p.count; ++i) ++launches[std::size_t(p.launches[i].group)];
  CHECK(std::count(launches.begin(), launches.end(), 0) == 0);
}
