// SPDX-License-Identifier: BSL-1.0
//
// The gradient law for a user's own layer: what backward says is the slope of what forward does. In double, every number
// that goes in is moved a little up and down.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <pipe/nn/compose.hpp>
#include <pipe/train/pipeline.hpp>

namespace pp {

/// How far gradients are from central differences: per parameter, the norm of the difference over the norm of the gradient,
/// and the largest difference over the largest element; the worst of all.
struct gradient_report {
  double worst = 0;
  int worst_parameter = -1;    ///< in the model's order
  double smallest = INFINITY;  ///< norm of a parameter's gradient: 0 would make the check empty
  long elements = 0;           ///< that were moved
  bool ok(double tolerance = 1e-6) const { return worst < tolerance && smallest > 0 && elements > 0; }
};

/// Numbers in (-1, 1) for a check: a function of (seed, stream, index).
inline double check_number(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return 2 * double(unit_uniform(random_block(seed, stream, index).word[0])) - 1;
}

/// Whether a model drops values at random: then its loss in training is another than that of an evaluation.
template <class M>
constexpr bool drops_at_random() {
  for (int i = 0; i < M::graph.size.ops; ++i)
    if (M::graph.ops[i].kind == op_kind::dropout) return true;
  return false;
}

/// Compares the gradients of a trainer in double with central differences of its loss on one mini-batch, for at most `most`
/// elements of each parameter. Parameters are left as they were.
template <class Trainer>
gradient_report compare_gradients(Trainer& trainer, typename Trainer::batch const& b, double step = 1e-5,
                                  std::size_t most = 60) {
  static_assert(sizeof(typename Trainer::element) == 8, "gradients are compared in double: use FP64");
  trainer.gradients(b);
  std::vector<std::vector<double>> found;  // copied: a training run makes them anew
  for (auto const& p : trainer.parameters()) found.emplace_back(p.gradients.begin(), p.gradients.end());
  gradient_report report;
  int index = 0, position = 0;
  for (auto& p : trainer.parameters()) {
    std::vector<double> const& gradients = found[std::size_t(position++)];
    if (gradients.empty()) continue;
    double difference = 0, size = 0, largest_difference = 0, largest = 0;
    std::size_t const stride = (p.values.size() + most - 1) / most;
    for (std::size_t e = 0; e < p.values.size(); e += stride, ++report.elements) {
      double const at = p.values[e];
      auto const loss = [&](double moved) {
        p.values[e] = at + moved;
        trainer.parameters_changed();
        if constexpr (drops_at_random<typename Trainer::model>()) return trainer.gradients(b).loss;
        return trainer.evaluate(b);
      };
      double const slope = (loss(step) - loss(-step)) / (2 * step), off = std::fabs(gradients[e] - slope);
      p.values[e] = at;
      difference += off * off;
      size += slope * slope;
      largest_difference = off <= largest_difference ? largest_difference : off;  // NaN stays
      largest = std::max(largest, std::fabs(slope));
    }
    double const relative = size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
    double const far = std::max(relative, largest > 0 ? largest_difference / largest : largest_difference);
    if (report.worst_parameter < 0 || !(far <= report.worst)) report.worst = far, report.worst_parameter = index;
    report.smallest = std::min(report.smallest, std::sqrt(size));
    ++index;
  }
  trainer.parameters_changed();
  return report;
}

/// A model around layer L: a Linear before it, so that its input gradient is checked too, and squared error after it. What
/// consists of ids goes to L as it is.
template <class L, class In, bool Ids = In::input.is_ids>
struct gradient_probe : Model<In, Linear<In::input.form.columns()>, L, MSE> {};
template <class L, class In>
struct gradient_probe<L, In, true> : Model<In, L, MSE> {};

/// Checks layer L on an input of the given shape: `check_gradients<Custom<Cumulative>, Input<5, 7>>().ok()`.
///
/// needs: L is smooth near where the seed puts it
template <class L, class In>
gradient_report check_gradients(std::uint64_t seed = 1, double step = 1e-5) {
  using trainer = Pipeline<gradient_probe<L, In>, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<3>>;
  typename trainer::settings with;
  with.seed = seed;
  trainer t(with);
  std::vector<typename trainer::input_type> inputs(std::size_t(trainer::samples * trainer::inputs_per_sample));
  std::vector<double> labels(std::size_t(trainer::samples * trainer::labels_per_sample));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    double const u = check_number(seed, 1, i);
    if constexpr (In::input.is_ids)
      inputs[i] = int((u + 1) / 2 * In::input.vocabulary);
    else
      inputs[i] = u;
  }
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = check_number(seed, 2, i);
  std::uint64_t stream = 100;
  for (auto& p : t.parameters()) {  // away from zeros and ones
    for (std::size_t e = 0; e < p.values.size(); ++e) p.values[e] += 0.3 * check_number(seed, stream, e);
    ++stream;
  }
  t.parameters_changed();
  return compare_gradients(t, {inputs, labels}, step);
}

}  // namespace pp
