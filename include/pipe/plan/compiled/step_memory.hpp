// SPDX-License-Identifier: BSL-1.0
//
// The memory of a rank besides the model's values: staged inputs, losses, gradient norms and
// records of executed actions.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/base/list.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/loss_labels.hpp>
#include <pipe/plan/compiled/flow_schedule.hpp>
#include <pipe/plan/options/transport.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/device_blocks.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/runtime_of.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::detail {

/// Layout of a rank's staging and bookkeeping. Work: a pipeline_schedule with a valid table, or a
/// planned_pipeline.
template <class Work>
struct step_memory {
  using backend = typename Work::backend;
  using model = typename Work::model;
  using element = typename Work::element;
  using value = typename Work::value;
  static constexpr int samples = Work::samples;

  static constexpr int report_slots =
      report_slots_of<typename Work::schedule, typename Work::transport>(Work::ranks,
                                                                         Work::mini_batch);
  static constexpr int losses = losses_in<typename model::loss>;

  /// Labels per sample.
  static constexpr long label_elements(graph_view const& g) {
    return long(g.output.rows()) * labels_of_row<typename model::loss>(g.output.columns());
  }
  /// Loss terms per micro-batch: of the first loss, then of further ones.
  static constexpr long loss_rows(graph_view const& g) {
    long rows = g.output.rows();
    for (int i = 1; i < g.inputs.count; ++i)
      rows += further_loss_rows(g.inputs.items[i], typename model::leaves{});
    return samples * rows;
  }
  /// Bytes of an input per micro-batch; of the labels for the number after the last input.
  static constexpr long batch_bytes(graph_view const& g, int input) {
    if (input == g.inputs.count)
      return samples * label_elements(g) *
             long(model::labels_are_ids ? sizeof(int) : sizeof(element));
    input_record const& in = g.inputs.items[input];
    return samples * in.form.elements() *
           long(in.is_ids    ? sizeof(int)
                : in.of_loss ? sizeof(element)
                             : sizeof(value));
  }

  /// A bit set of the inputs that a stage reads; the bit after the last input is the labels.
  static constexpr unsigned inputs_read(layout_totals const& stage, graph_view const& g) {
    return stage.inputs_read | unsigned(stage.reads_labels) << g.inputs.count;
  }

  /// Whether the backend has its own memory: inputs are uploaded, and bookkeeping is on the device.
  static constexpr bool on_device = backend::has_own_memory;
  /// Micro-batches of an input that are staged at a time. The host stages only a partly filled
  /// micro-batch, so none if a micro-batch is a single sample, unless numbers are converted.
  static constexpr int staged = on_device ? Work::micro_batches
                                          : samples > 1 || Work::widths.has_copies();
  /// Of those that are prefetched: of all accumulations.
  static constexpr int prefetched =
      prefetch_rooms(Work::sum::accumulations) * Work::sum::accumulations * Work::micro_batches;

  /// Size of the largest gradient of a shared parameter that rank r receives.
  static constexpr long received_tie(int r, chunk_description const* chunks, view<tie> ties) {
    long most = 0;
    for (tie const& t : ties)
      if (chunks[t.owner_chunk].rank == r && is_copied<Work>(chunks[t.chunk].rank, r) &&
          t.place.elements() > most)
        most = t.place.elements();
    return most * long(sizeof(element));
  }

  /// Records of executed actions: of a run, or of steps that overlap, with their updates.
  static constexpr long records(rank_description const& rank) {
    if constexpr (Work::overlap == step_overlap::none) return rank.most_actions();
    long const runs =
        Work::is_free ? 1 : Work::sum::accumulations;  // a period has all accumulations
    int const ahead = Work::is_free ? steps_ahead_of_flow(Work::ranks, Work::mini_batch) : 0;
    return (recorded_steps + ahead) * (runs * rank.most_actions() + 1);
  }

  /// What the memory depends on besides the options and the chunks.
  struct step_facts {
    graph_view model;  // with or without ops and values
    int streams = 0;   // of random bits
    view<tie> ties;
  };
  /// Appends staging and bookkeeping to the arena of rank r, which reads the inputs in
  /// `inputs_read`.
  template <class Map>
  static constexpr void take(Map& map, int r, unsigned inputs_read, step_facts const& facts) {
    graph_view const& g = facts.model;
    rank_description& rank = map.rank[r];
    chunk_description* const chunks = map.chunks.items;
    chunk_holder const* const holders = map.holders.items;
    // Staging comes first, so that staging_bytes and bookkeeping_bytes are two adjacent ranges.
    constexpr int stages = Work::stages;
    long from = rank.bytes;
    auto const take = [&](long bytes) {
      long const at = rank.bytes;
      rank.bytes += align_up(bytes);
      return at;
    };
    // The bit after the last input stands for the labels, as in inputs_read.
    for (int i = 0; i <= g.inputs.count; ++i)
      if (inputs_read >> i & 1) {
        rank.staging[i] = take(staged * batch_bytes(g, i));
        if (on_device && Work::prefetching::is_on)
          rank.prefetched[i] = take(prefetched * batch_bytes(g, i));
      }
    rank.staging_bytes = rank.bytes - from;
    from = rank.bytes;
    chunk_description const& last = chunks[stages - 1];
    bool is_last = last.rank == r;
    for (int n = last.first_holder; n < last.first_holder + last.holders; ++n)
      if (holders[n].rank == r) {
        rank.row_losses = take(loss_rows(g) * long(sizeof(double)));
        is_last = is_last || last.has_copies();
      }
    int const sums = last.holders * losses_of_holder(Work::micro_batches, last.holders);
    // Of every micro-batch, and partial sums. A transport that copies gives every rank that of the
    // mini-batch, not only the rank of the last stage. On devices rank 0 judges the step.
    constexpr int levels = levels_of(Work::sum::accumulations);
    bool const judges = on_device && r == 0 && is_copied<Work>(chunks[stages - 1].rank, r);
    if (is_last || judges || Work::transport::copies)
      rank.losses = take((is_last  ? sums + levels
                          : judges ? sums
                                   : 1) *
                         losses * long(sizeof(double)));
    if constexpr (on_device) {
      // Which ranks are the first of a process is known at run time.
      constexpr device_blocks blocks{Work::devices, Work::ranks};
      rank.device_bookkeeping_bytes =
          detail::runtime_of<backend>::template bookkeeping_bytes<typename Work::optimizer>(
              chunks, stages, r, blocks.is_first(r) || Work::transport::copies, g.parameters.count,
              facts.streams);
      rank.device_bookkeeping = take(rank.device_bookkeeping_bytes);
      rank.received_tie = take(received_tie(r, chunks, facts.ties));
    } else {
      rank.executed = take(records(rank) * long(sizeof(executed_action)));
      for (int s = 0; s < stages; ++s) {
        chunk_description& c = chunks[s];
        if (c.rank != r) continue;
        c.norms = take(2 * c.parameters.count * long(sizeof(double)));
        for (parameter_place const& p : c.parameters) rank.block_count += blocks_of(p);
      }
      rank.blocks = take(rank.block_count * long(sizeof(gradient_block)));
      if constexpr (Work::transport::copies) {
        long norms = 0;
        for (int s = 0; s < stages; ++s) {
          chunks[s].norms_before = norms;
          norms += 2 * chunks[s].parameters.count * long(sizeof(double));
        }
        rank.norms = take(norms);
        rank.report_stride = norms + losses * long(sizeof(double));
        rank.reports = take(report_slots * rank.report_stride);
        rank.received_tie = take(received_tie(r, chunks, facts.ties));
      }
    }
    long summed = 0, level = 0;
    for (int s = 0; s < stages; ++s) {
      chunk_description& c = chunks[s];
      if (c.rank != r) continue;
      c.in_level = level;
      level += c.summed_bytes();
      if (c.summed_bytes() > summed) summed = c.summed_bytes();
    }
    constexpr int zero = Work::zero::level;
    if constexpr (connects_replicas<typename Work::transport> && (on_device || zero == 0)) {
      rank.replica_room_bytes = room_for_replicas(summed);
      rank.replica_room = take(rank.replica_room_bytes);
    }
    rank.bookkeeping_bytes = rank.bytes - from;
    rank.fixed_bytes = rank.bytes;
    rank.level_bytes = level;
    arena_facts const arena{chunks,
                            stages,
                            Work::sum::accumulations,
                            zero,
                            long(sizeof(element)),
                            1,
                            Work::divides_gradients,
                            long(sizeof(value))};
    rank.bytes = end_of_arena(arena, rank, r, 1, 0).end;
  }
};

}  // namespace pp::detail
