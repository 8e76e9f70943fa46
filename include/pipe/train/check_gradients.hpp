// SPDX-License-Identifier: BSL-1.0
//
// Gradient checks for user-defined layers and losses: gradients of backward against central
// differences of the loss, in double precision.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <pipe/nn/compose.hpp>
#include <pipe/train/pipeline.hpp>

namespace pp {

namespace detail {

/// Deviation of gradients from central differences. For each parameter, the greater of two ratios:
/// the norm of the difference to the norm of the gradient, and the largest difference to the
/// largest element.
struct gradient_report {
  double worst = 0;            ///< maximum over all parameters
  int worst_parameter = -1;    ///< the position in parameters() of that maximum
  double smallest = INFINITY;  ///< smallest norm of differences: at 0 the check would be vacuous
  long elements = 0;           ///< number of elements checked
  bool ok(double tolerance = 1e-6) const {
    return worst < tolerance && smallest > 0 && elements > 0;
  }
};

/// Random number in (-1, 1): a function of (seed, stream, index).
inline double check_number(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return 2 * double(math::unit_uniform(math::random_block(seed, stream, index).word[0])) - 1;
}

/// Whether a model's losses in training and in evaluation differ: the model has a dropout or a
/// batch norm.
template <class M>
constexpr bool trains_differently() {
  for (int i = 0; i < M::graph.size.ops; ++i)
    if (op_kind const k = M::graph.ops[i].kind;
        k == op_kind::dropout || k == op_kind::batch_statistics)
      return true;
  return false;
}

/// Compares a trainer's gradients on a mini-batch with central differences of its loss, for at most
/// `most` elements of each parameter. Parameters are restored. The trainer computes in double, and
/// has all of its ranks in this process.
template <class Trainer>
gradient_report compare_gradients(Trainer& trainer, typename Trainer::batch const& b,
                                  double step = 1e-5, std::size_t most = 60) {
  static_assert(sizeof(typename Trainer::element) == 8,
                "gradients are compared in double: use FP64");
  static_assert(!stream_transport<typename Trainer::compiled::transport>,
                "gradients are compared in one process");
  if (most < 1)
    throw error("compare_gradients: expected at least 1 element of each parameter, got 0");
  trainer.gradients(b);
  std::vector<std::vector<double>> found;  // copies, because the next training run overwrites them
  for (auto const& p : trainer.parameters())
    found.emplace_back(p.gradients.begin(), p.gradients.end());
  gradient_report report;
  int position = -1;
  for (auto& p : trainer.parameters()) {
    std::vector<double> const& gradients = found[std::size_t(++position)];
    if (gradients.empty()) continue;
    double difference = 0, size = 0, largest_difference = 0, largest = 0;
    // Every stride-th element, so that the checked elements are spread over the whole parameter.
    std::size_t const stride = (p.values.size() + most - 1) / most;
    for (std::size_t e = 0; e < p.values.size(); e += stride, ++report.elements) {
      double const at = p.values[e];
      auto const loss = [&](double moved) {
        p.values[e] = at + moved;
        trainer.parameters_changed();
        // Gradients contain dropout and statistics of micro-batches, evaluate() does not.
        if constexpr (trains_differently<typename Trainer::model>())
          return trainer.gradients(b).loss;
        return trainer.evaluate(b);
      };
      double const slope = (loss(step) - loss(-step)) / (2 * step),
                   off = std::fabs(gradients[e] - slope);
      p.values[e] = at;
      difference += off * off;
      size += slope * slope;
      largest_difference = off <= largest_difference ? largest_difference : off;  // keeps a NaN
      largest = std::max(largest, std::fabs(slope));
    }
    double const relative = size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
    double const error =
        std::max(relative, largest > 0 ? largest_difference / largest : largest_difference);
    if (report.worst_parameter < 0 || !(error <= report.worst))
      report.worst = error, report.worst_parameter = position;
    report.smallest = std::min(report.smallest, std::sqrt(size));
  }
  trainer.parameters_changed();
  return report;
}

/// A model to check layer L: a Linear before it, so that its input gradient is checked too, and
/// squared error after it. Ids are passed to L directly.
template <class L, class In, bool Ids = In::input.is_ids>
struct gradient_probe : Model<In, Linear<In::input.form.columns()>, L, MSE> {};
template <class L, class In>
struct gradient_probe<L, In, true> : Model<In, L, MSE> {};

/// A model to check loss L: a Linear before the loss gives outputs of both signs.
template <class L, class In>
struct loss_probe : Model<In, Linear<In::input.form.columns()>, L> {};

/// Checks a model's gradients on one mini-batch of random numbers.
template <class M>
gradient_report check_model(std::uint64_t seed, double step) {
  using trainer = Pipeline<M, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<3>>;
  typename trainer::settings with;
  with.seed = seed;
  trainer t(with);
  auto const fill = [seed](auto& list, long per_sample, std::uint64_t stream, int ids) {
    using number = typename std::remove_reference_t<decltype(list)>::value_type;
    for (std::size_t i = 0; i < std::size_t(trainer::samples * per_sample); ++i) {
      double const u = check_number(seed, stream, i);
      list.push_back(number(ids > 0 ? (u + 1) / 2 * ids : u));
    }
  };
  std::vector<typename trainer::input_type> inputs;
  std::vector<typename trainer::label_type> labels;
  fill(inputs, trainer::inputs_per_sample, 1, M::graph.inputs[0].vocabulary);
  fill(labels, trainer::labels_per_sample, 2, M::labels_are_ids ? M::graph.output.columns() : 0);
  if constexpr (requires { M::loss::least_target; })
    for (auto& label : labels) label = (label + 1) / 2;  // all such ranges are [0, 1]
  typename trainer::batch b{inputs, labels};
  std::vector<double> named[max_inputs];
  for (int i = 1; i < M::graph.size.inputs;
       ++i) {  // what a loss reads: positive, so that it may be a weight or a variance
    fill(named[i], M::graph.inputs[i].form.elements(), 2 + std::uint64_t(i), 0);
    for (double& x : named[i]) x = 1.5 + x;
    b.named_numbers[i] = named[i];
  }
  // A stream of random numbers per parameter, disjoint from those of inputs and labels.
  std::uint64_t stream = 100;
  for (auto& p : t.parameters()) {  // away from zeros and ones
    for (std::size_t e = 0; e < p.values.size(); ++e)
      p.values[e] += 0.3 * check_number(seed, stream, e);
    ++stream;
  }
  t.parameters_changed();
  return compare_gradients(t, b, step);
}

}  // namespace detail

/// Checks the gradients of layer L on an input of the given shape:
/// `check_gradients<Custom<Cumulative>, Input<5, 7>>().ok()`.
///
/// needs: L is smooth near the random point given by the seed
template <class L, class In>
detail::gradient_report check_gradients(std::uint64_t seed = 1, double step = 1e-5) {
  return detail::check_model<detail::gradient_probe<L, In>>(seed, step);
}

/// Checks the gradients of loss L on an output of the given shape: `check_loss<Pinball,
/// Input<5>>().ok()`. Targets are in (-1, 1), those of a loss of shares in (0, 1), further inputs
/// of the loss in (0.5, 2.5).
///
/// needs: L is smooth near the random point given by the seed
template <class L, class In>
detail::gradient_report check_loss(std::uint64_t seed = 1, double step = 1e-5) {
  return detail::check_model<detail::loss_probe<L, In>>(seed, step);
}

}  // namespace pp
