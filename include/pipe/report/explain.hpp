// SPDX-License-Identifier: BSL-1.0
//
// The plan of a pipeline as text: computation and memory of each stage, and a drawing of the
// schedule. It needs no trainer object: `std::puts(pp::explain<Trainer>().c_str())`.
#pragma once

#include <string>
#include <vector>

#include <pipe/base/type_name.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/plan/options/partition.hpp>
#include <pipe/plan/options/transport.hpp>
#include <pipe/plan/plan.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/explain_cores.hpp>
#include <pipe/report/layer_list.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/report/timeline.hpp>
#include <pipe/schedule/drain.hpp>

namespace pp {

namespace detail {

/// Width of the text in characters; longer names exceed it.
inline constexpr int explain_width = 100;

}  // namespace detail

namespace detail {

/// The model, its size and the options, in two lines; with Lengths three.
template <class Trainer>
std::string explain_options() {
  auto const& plan = Trainer::compiled::plan();
  std::string text(type_name<typename Trainer::model>());
  std::string const trained =
      plan.trained < plan.parameters ? ", " + readable_count(plan.trained) + " trained" : "";
  std::string const buffers =
      plan.buffers > 0 ? ", " + readable_count(plan.buffers) + " in buffers" : "";
  text += ": " + counted(plan.parameters, "parameter") + trained + buffers + ", " +
          counted(plan.kernels, "distinct kernel") + ", " + plan.precision + ", " + plan.optimizer +
          "\n";
  std::string const threads = plan.threads > 1 ? " of " + counted(plan.threads, "thread") : "";
  std::string const accumulations =
      plan.accumulations > 1 ? std::to_string(plan.accumulations) + " x " : "";
  text += counted(plan.stage_count, "stage") + " on " + counted(plan.rank_count, "rank") + threads +
          ", schedule " + plan.schedule + ", " + accumulations +
          std::to_string(plan.micro_batches) + " x " + counted(plan.micro_batch_size, "sample") +
          " per step\n";
  if constexpr (requires { requires Trainer::compiled::lengths::block > 0; })
    text += "samples of several lengths: FLOPs, bytes and times below are of the longest\n";
  return text;
}

/// The layers of each stage. Consecutive stages with equal layers share a line.
template <class Trainer>
std::string explain_layers() {
  auto const names_of = [](int s) {
    stage_plan const& stage = Trainer::compiled::plan().stages[s];
    return list_layers<typename Trainer::model>(Trainer::compiled::work::graph(), stage.first_layer,
                                                stage.end_layer);
  };
  std::string text;
  for (int s = 0, end = 0; s < Trainer::compiled::stages; s = end) {
    std::string const names = names_of(s);
    for (end = s + 1; end < Trainer::compiled::stages && names_of(end) == names;) ++end;
    std::string head = end == s + 1 ? "stage " : "stages ";
    head += std::to_string(s);
    if (end > s + 1) head += "-", head += std::to_string(end - 1);
    head += "  ";
    text += wrapped(head + names, explain_width, head.size()) + "\n";
  }
  return text;
}

/// The ranks of a stage: "2", "2-4" for a stage with replicas, "0, 3" for a stage in two
/// directions.
template <class = void>
std::string ranks_of_stage(stage_plan const& s) {
  std::string text = std::to_string(s.rank);
  if (s.ranks > 1)
    text += (s.apart == 1 ? "-" : ", ") + std::to_string(s.rank + (s.ranks - 1) * s.apart);
  return text;
}

/// Table of the stages' work: layers counted from 0; FLOPs and launches of one micro-batch, forward
/// + backward; fraction of time, estimated or measured; micro-batches in flight between forward and
/// backward.
template <class Trainer>
std::string explain_work() {
  auto const& plan = Trainer::compiled::plan();
  text_table table({"stage", "rank", "layers", "in -> out", "parameters", "MFLOP F + B",
                    "launches F + B", "time", "in flight"},
                   {2, 3});
  for (int s = 0; s < plan.stage_count; ++s) {
    stage_plan const& p = plan.stages[s];
    bool const ids = s == 0 && Trainer::compiled::work::graph().inputs[0].is_ids;
    table.add({std::to_string(s), ranks_of_stage(p),
               std::to_string(p.first_layer) + "-" + std::to_string(p.end_layer - 1),
               readable_shape(p.in) + (ids ? " ids" : "") + " -> " + readable_shape(p.out),
               readable_count(p.parameters),
               readable_real(double(p.forward_flops) * 1e-6, 1) + " + " +
                   readable_real(double(p.backward_flops) * 1e-6, 1),
               std::to_string(p.forward_kernels) + " + " + std::to_string(p.backward_kernels),
               readable_percent(p.share), std::to_string(p.in_flight)});
  }
  return table.str();
}

/// FLOPs of a step, counted by the model's own operations and by the usual rule for Transformers,
/// 6 for each parameter and position; and the share of what the ranks could compute that they fill
/// at most: the model FLOPs utilisation of kernels at full speed. A position is a row of the
/// output, so of images the rule has one per sample, and says little.
///
/// source: Kaplan et al., Scaling Laws for Neural Language Models, 2020, section 2.1 (6 N D);
///         Chowdhery et al., PaLM, 2022, appendix B (utilisation, without recomputation)
template <class Trainer>
std::string explain_flops() {
  auto const& plan = Trainer::compiled::plan();
  using work = typename Trainer::compiled::work;
  double const runs = double(plan.accumulations) * plan.micro_batches,
               positions = runs * plan.micro_batch_size * double(work::graph().output.rows());
  double again = 0;
  for (int s = 0; s < plan.stage_count; ++s)
    again += double(plan.stages[s].recompute_flops) * plan.accumulations * work::first_kept;
  double const own = double(plan.step_flops),
               idle = work::overlap == step_overlap::none ? plan.bubble : plan.bubble_steady,
               useful = own + again > 0 ? own / (own + again) : 0;
  std::string text = "a step: " + readable_real(own * 1e-6, 1) + " MFLOP, " +
                     readable_real(6e-6 * double(plan.parameters) * positions, 1) +
                     " by 6 N D (parameters, positions); utilisation of the ranks at most " +
                     readable_percent((1 - idle) * useful);
  if (again > 0) text += ", " + readable_percent(1 - useful) + " recomputed";
  return text + "\n";
}

/// Table of the stages' memory by kind, with sums. There is a column for buffers if there are any.
/// Where steps overlap, a column has the number of versions of the weights, and the bytes of all
/// versions but the newest and of the state before an update.
template <class Trainer>
std::string explain_memory() {
  auto const& plan = Trainer::compiled::plan();
  std::vector<std::string> names{"stage",      "parameters", "gradients", "optimizer",
                                 "transposed", "saved",      "boundary"};
  bool has_buffers = false, has_versions = false;
  for (int s = 0; s < plan.stage_count; ++s) {
    has_buffers = has_buffers || plan.stages[s].buffer_bytes > 0;
    has_versions = has_versions || plan.stages[s].version_bytes > 0;
  }
  if (has_buffers) names.emplace_back("buffers");
  if (has_versions) names.emplace_back("versions");
  names.emplace_back("sum");
  text_table table(names);
  stage_plan all;
  auto const row = [&](std::string const& name, stage_plan const& p) {
    std::vector<std::string> cells{name,
                                   readable_bytes(p.parameter_bytes),
                                   readable_bytes(p.gradient_bytes),
                                   readable_bytes(p.optimizer_bytes),
                                   readable_bytes(p.transposed_bytes),
                                   readable_bytes(p.saved_bytes),
                                   readable_bytes(p.boundary_bytes)};
    if (has_buffers) cells.push_back(readable_bytes(p.buffer_bytes));
    if (has_versions)
      cells.push_back((&p == &all ? "" : std::to_string(p.versions) + ": ") +
                      readable_bytes(p.version_bytes));
    cells.push_back(readable_bytes(p.bytes));
    table.add(cells);
  };
  for (int s = 0; s < plan.stage_count; ++s) {
    stage_plan const& p = plan.stages[s];
    row(std::to_string(s), p);
    for (auto const amount :
         {&stage_plan::parameter_bytes, &stage_plan::gradient_bytes, &stage_plan::optimizer_bytes,
          &stage_plan::transposed_bytes, &stage_plan::saved_bytes, &stage_plan::boundary_bytes,
          &stage_plan::buffer_bytes, &stage_plan::version_bytes, &stage_plan::bytes})
      all.*amount += p.*amount;
  }
  row("all", all);
  return table.str();
}

/// Table of the ranks' memory: stages, staged inputs, bookkeeping, and scratch of running kernels;
/// partial sums of gradients if there are any, and optimizer state in the host's memory.
template <class Trainer>
std::string explain_ranks() {
  auto const& plan = Trainer::compiled::plan();
  std::vector<std::string> names{"rank", "stages", "inputs", "bookkeeping", "scratch"};
  if (plan.accumulations > 1) names.emplace_back("sums");
  names.emplace_back("allocated");
  long host_bytes = 0;
  for (long const bytes : plan.host_bytes) host_bytes += bytes;
  if (host_bytes > 0) names.emplace_back("on the host");
  text_table table(names);
  for (int r = 0; r < plan.rank_count; ++r) {
    long stages = 0;
    for (stage_plan const& s : plan.stages) stages += s.bytes_on(r);
    // The rest of the rank's allocation.
    long const scratch = plan.rank_bytes[r] - stages - plan.staging_bytes[r] -
                         plan.bookkeeping_bytes[r] - plan.gradient_sum_bytes[r];
    std::vector<std::string> cells{
        std::to_string(r), readable_bytes(stages), readable_bytes(plan.staging_bytes[r]),
        readable_bytes(plan.bookkeeping_bytes[r]), readable_bytes(scratch)};
    if (plan.accumulations > 1) cells.push_back(readable_bytes(plan.gradient_sum_bytes[r]));
    cells.push_back(readable_bytes(plan.rank_bytes[r]));
    if (host_bytes > 0) cells.push_back(readable_bytes(plan.host_bytes[r]));
    table.add(cells);
  }
  std::string text =
      table.str() + "one allocation per rank, " + readable_bytes(plan.bytes) + " in all";
  if (host_bytes > 0)
    text += ", and " + readable_bytes(host_bytes) + " of optimizer state on the host";
  text += "\n";
  if (plan.zero == 0) return text;
  std::string numbers, bytes;
  for (int const n : {2, 8, 64}) {
    if (plan.accumulations > 1 && n > plan.accumulations)
      break;  // GradientAccumulation has accumulations for no more
    numbers += (n > 2 ? ", " : "") + std::to_string(n);
    bytes += (n > 2 ? ", " : "") + readable_bytes(plan.rank_bytes_of(0, n));
  }
  text += "ZeRO<" + std::to_string(plan.zero) + ">, rank 0 of the first of " + numbers +
          " replicas: " + bytes + "\n";
  return text;
}

/// Bytes of gradients that ranks exchange with replicas, and the bandwidth that hides them in the
/// rest of the step, when its gradients are complete. profiled: times are nanoseconds, else FLOPs
template <class Trainer>
std::string explain_exchange(bool profiled) {
  auto const& plan = Trainer::compiled::plan();
  auto const& table = Trainer::compiled::table();
  auto const& when = Trainer::compiled::timeline();
  std::string text = "replicas: each of n sends 2 (n - 1) / n times the gradients of its ranks";
  text_table rows({"rank", "gradients", "in the drain", "hidden by", "and the next fill", "by"});
  for (int r = 0; r < plan.rank_count; ++r) {
    exchange_window const w = window_of(table, when, r);
    double const bytes = 2 * double(plan.summed_bytes[r]) * (profiled ? 1 : 1000);
    auto const share = [&](long time) {
      return readable_percent(double(time) / double(when.makespan));
    };
    auto const by = [&](long time) {
      return time == 0 ? "-" : readable_real(bytes / double(time), 3);
    };
    rows.add({std::to_string(r), readable_bytes(plan.summed_bytes[r]), share(w.drain), by(w.drain),
              share(w.drain + w.fill), by(w.drain + w.fill)});
  }
  return text + " per step\n" + rows.str() + "of the makespan; hidden by: GB/s each way" +
         (profiled ? "" : " for each TFLOP/s") +
         ", many replicas; the next fill: without a barrier\n";
}

/// Table of the links between ranks: bytes of a micro-batch and of a step, and the bandwidth that
/// hides them. Of replicas, what a rank exchanges with the others.
template <class Trainer>
std::string explain_links() {
  auto const& plan = Trainer::compiled::plan();
  using partition = typename Trainer::compiled::partition;
  constexpr bool profiled = requires { typename partition::profile; };
  std::string text;
  if (plan.links.count > 0) {
    text_table table({"link", "values", "gradients", "shared", "per step", "hidden by"}, {0});
    for (link_plan const& link : plan.links)
      table.add(
          {"rank " + std::to_string(link.from) + " -> " + std::to_string(link.to),
           readable_bytes(link.values), readable_bytes(link.gradients),
           readable_bytes(link.shared + link.sums * plan.accumulations),
           readable_bytes(plan.step_bytes_of(link)),
           link.bandwidth == 0 ? "-" : readable_real(link.bandwidth * (profiled ? 1 : 1000), 3)});
    text = table.str() + "values and gradients of a micro-batch; hidden by: GB/s" +
           (profiled ? "" : " for each TFLOP/s of the slowest rank") + "\n";
  }
  if (plan.accumulations > 1 || connects_replicas<typename Trainer::compiled::transport>)
    text += explain_exchange<Trainer>(profiled);
  return text.empty() ? text : text + "\n";
}

/// The period, if steps overlap: a line.
template <class Trainer>
std::string explain_period() {
  auto const& plan = Trainer::compiled::plan();
  if (Trainer::compiled::overlap == step_overlap::none) return {};
  double const makespan = double(Trainer::compiled::timeline().makespan);
  return "without a barrier, a step takes " + readable_percent(plan.period.value() / makespan) +
         " of the makespan in the long run, bubble " + readable_percent(plan.bubble_steady) + "\n";
}

/// What another order could save: a line, if several ranks train.
template <class Trainer>
std::string explain_gap() {
  auto const& plan = Trainer::compiled::plan();
  if (Trainer::compiled::ranks == 1 || !Trainer::compiled::schedule::trains) return {};
  if (plan.proved) return "no other order of these stages is faster in this memory\n";
  return "another order of these stages could save at most " + readable_percent(plan.gap) +
         " of the step in this memory\n";
}

/// Whether the layer with this number among the leaves has parts between which a CutInside lets it
/// be cut.
template <class... L>
bool may_be_cut_inside(layers<L...>, int leaf) {
  bool const all[] = {joins_parts<L>..., false};
  return all[leaf];
}

/// The layer that no cut can make faster, if there is one and stages are unequal: a line.
template <class Trainer>
std::string explain_limit() {
  auto const& plan = Trainer::compiled::plan();
  int const layer = plan.limiting_layer;
  if (layer < 0 || plan.imbalance < 1.05) return {};
  std::string const name =
      list_layers<typename Trainer::model>(Trainer::compiled::work::graph(), layer, layer + 1);
  bool const has_parts = may_be_cut_inside(typename Trainer::model::leaves{},
                                           Trainer::compiled::work::graph().units[layer].leaf);
  return wrapped("layer " + std::to_string(layer) + " (" + name +
                     ") alone takes as long as the slowest stage: no cut is faster, only " +
                     (has_parts ? "CutInside<...> around it" : "finer layers") +
                     " or more ranks for this stage",
                 explain_width, 2) +
         "\n";
}

/// Imbalance, bubbles and a drawing of the schedule with the plan's times.
template <class Trainer>
std::string explain_schedule() {
  auto const& plan = Trainer::compiled::plan();
  return "imbalance " + readable_real(plan.imbalance, 3) + " (slowest stage over mean), bubble " +
         readable_percent(plan.bubble) + " of the makespan, " +
         readable_percent(plan.bubble_stage_local) + " stage-local\n" + explain_limit<Trainer>() +
         explain_period<Trainer>() + explain_gap<Trainer>() + explain_cores<Trainer>() +
         draw(Trainer::compiled::table(), Trainer::compiled::timeline(), explain_width - 12) +
         drawing_legend(Trainer::compiled::schedule::splits_backward) + "\n";
}

}  // namespace detail

/// The whole plan as text: options, layers, work, memory, ranks, links and schedule.
/// A type without a plan is refused at compile time.
template <class Trainer>
std::string explain() {
  if constexpr (requires { Trainer::compiled::plan(); }) {
    return detail::explain_options<Trainer>() + "\n" + detail::explain_layers<Trainer>() + "\n" +
           detail::explain_work<Trainer>() + detail::explain_flops<Trainer>() + "\n" +
           detail::explain_memory<Trainer>() + "\n" + detail::explain_ranks<Trainer>() + "\n" +
           detail::explain_links<Trainer>() + detail::explain_schedule<Trainer>();
  } else {
    static_assert(
        detail::accepted<decltype(detail::diagnosis_of<wrong::only_a_pipeline_can_be_explained,
                                                       Trainer>())>::value);
    return {};
  }
}

}  // namespace pp
