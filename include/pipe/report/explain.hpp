// SPDX-License-Identifier: BSL-1.0
//
// The plan of a pipeline as text to read: what each stage holds, costs and keeps, and its schedule
// drawn. All of it is constant, so no trainer has to exist:
// `std::puts(pp::explain<Trainer>().c_str())`.
#pragma once

#include <string>
#include <vector>

#include <pipe/base/type_name.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/layer_list.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/report/timeline.hpp>
#include <pipe/train/plan.hpp>

namespace pp {

namespace detail {

/// How wide the text is at most, where names allow it.
inline constexpr int explain_width = 100;

}  // namespace detail

/// 1, "stage" -> "1 stage"; 4, "stage" -> "4 stages"
inline std::string counted(long n, char const* what) {
  return readable_count(n) + " " + what + (n == 1 ? "" : "s");
}

namespace detail {

/// The model, its size and the options, in two lines.
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
  text += counted(plan.stage_count, "stage") + " on " + counted(plan.rank_count, "rank") + threads +
          ", schedule " + plan.schedule + ", " + std::to_string(plan.micro_batches) + " x " +
          counted(plan.micro_batch_size, "sample") + " per step\n";
  return text;
}

/// Which layers are in which stage; neighbours that have the same share a line.
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

/// What the stages compute. Layers are counted from 0; FLOPs and launches are of one micro-batch,
/// forward + backward; time is the stage's share by estimate or profile; in flight are the
/// micro-batches between forward and backward.
template <class Trainer>
std::string explain_work() {
  auto const& plan = Trainer::compiled::plan();
  text_table table({"stage", "rank", "layers", "in -> out", "parameters", "MFLOP F + B",
                    "launches F + B", "time", "in flight"},
                   {2, 3});
  for (int s = 0; s < plan.stage_count; ++s) {
    stage_plan const& p = plan.stages[s];
    bool const ids = s == 0 && Trainer::compiled::work::graph().inputs[0].is_ids;
    table.add({std::to_string(s), std::to_string(p.rank),
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

/// What the stages keep, by kind, and the sums. Buffers have a column if there are any.
template <class Trainer>
std::string explain_memory() {
  auto const& plan = Trainer::compiled::plan();
  std::vector<std::string> names{"stage",      "parameters", "gradients", "optimizer",
                                 "transposed", "saved",      "boundary"};
  bool has_buffers = false;
  for (int s = 0; s < plan.stage_count; ++s)
    has_buffers = has_buffers || plan.stages[s].buffer_bytes > 0;
  if (has_buffers) names.push_back("buffers");
  names.push_back("sum");
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
    cells.push_back(readable_bytes(p.bytes));
    table.add(cells);
  };
  for (int s = 0; s < plan.stage_count; ++s) {
    stage_plan const& p = plan.stages[s];
    row(std::to_string(s), p);
    for (auto const amount :
         {&stage_plan::parameter_bytes, &stage_plan::gradient_bytes, &stage_plan::optimizer_bytes,
          &stage_plan::transposed_bytes, &stage_plan::saved_bytes, &stage_plan::boundary_bytes,
          &stage_plan::buffer_bytes, &stage_plan::bytes})
      all.*amount += p.*amount;
  }
  row("all", all);
  return table.str();
}

/// What the ranks allocate: their stages, inputs that have to be staged, losses and records,
/// scratch of running kernels.
template <class Trainer>
std::string explain_ranks() {
  auto const& plan = Trainer::compiled::plan();
  text_table table({"rank", "stages", "inputs", "bookkeeping", "scratch", "allocated"});
  for (int r = 0; r < plan.rank_count; ++r) {
    long stages = 0;
    for (stage_plan const& s : plan.stages) stages += s.rank == r ? s.bytes : 0;
    long const scratch =
        plan.rank_bytes[r] - stages - plan.staging_bytes[r] - plan.bookkeeping_bytes[r];
    table.add({std::to_string(r), readable_bytes(stages), readable_bytes(plan.staging_bytes[r]),
               readable_bytes(plan.bookkeeping_bytes[r]), readable_bytes(scratch),
               readable_bytes(plan.rank_bytes[r])});
  }
  return table.str() + "one allocation per rank, " + readable_bytes(plan.bytes) + " in all\n";
}

/// Balance, bubble and the schedule, drawn with the times of the plan.
template <class Trainer>
std::string explain_schedule() {
  auto const& plan = Trainer::compiled::plan();
  return "imbalance " + readable_real(plan.imbalance, 3) + " (slowest stage over mean), bubble " +
         readable_percent(plan.bubble) + " of the makespan, " +
         readable_percent(plan.bubble_stage_local) + " stage-local\n" +
         draw(Trainer::compiled::table(), Trainer::compiled::timeline(), explain_width - 12) +
         drawing_legend(Trainer::compiled::schedule::splits_backward) + "\n";
}

}  // namespace detail

namespace wrong {
template <class... What>
struct only_a_pipeline_can_be_explained;
}  // namespace wrong

/// The whole plan as text: options, layers, work, memory, ranks and schedule.
template <class Trainer>
std::string explain() {
  if constexpr (requires { Trainer::compiled::plan(); }) {
    return detail::explain_options<Trainer>() + "\n" + detail::explain_layers<Trainer>() + "\n" +
           detail::explain_work<Trainer>() + "\n" + detail::explain_memory<Trainer>() + "\n" +
           detail::explain_ranks<Trainer>() + "\n" + detail::explain_schedule<Trainer>();
  } else {
    static_assert(
        accepted<std::type_identity<wrong::only_a_pipeline_can_be_explained<Trainer>>>::value);
    return {};
  }
}

}  // namespace pp
