// SPDX-License-Identifier: BSL-1.0
//
// A call on a trainer in numbers, by which processes find out that they make different ones: then
// their weights would drift apart, or one would wait for what no other sends.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include <pipe/base/config.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::detail {

/// A call, and what of its arguments and of the trainer's settings must be the same in all
/// processes. It is sent as its bytes, of which none is padding.
struct process_call {
  enum class kinds : std::uint64_t { step, accumulate, gradients, evaluate, forward };
  kinds kind = kinds::step;
  std::uint64_t seed = 0;
  std::uint64_t optimizer = 0;  ///< a hash of its settings
  double samples = 0;           ///< of the mini-batch
  double loss_terms = 0;
  double step = 0;
  double learning_rate = 0, clip_value = 0, clip_norm = 0;

  bool operator==(process_call const& other) const {
    return std::memcmp(this, &other, sizeof(*this)) == 0;
  }
  char const* name() const {
    constexpr char const* names[]{"step", "accumulate", "gradients", "evaluate", "forward"};
    return kind <= kinds::forward ? names[int(kind)] : "an unknown one";
  }
};
static_assert(sizeof(process_call) == 9 * 8);

/// The first difference of two calls, in words: "evaluate, and not step", "step with samples 17,
/// and not 32".
[[gnu::cold]] inline std::string difference(process_call const& there, process_call const& here) {
  struct number {
    char const* name;
    double there, here;
  };
  number const numbers[]{{"samples", there.samples, here.samples},
                         {"step", there.step, here.step},
                         {"loss_terms", there.loss_terms, here.loss_terms},
                         {"learning_rate", there.learning_rate, here.learning_rate},
                         {"clip_value", there.clip_value, here.clip_value},
                         {"clip_norm", there.clip_norm, here.clip_norm}};
  if (there.kind != here.kind) return sentence({there.name(), ", and not ", here.name()}).begin();
  for (number const& n : numbers)
    if (n.there != n.here)
      return sentence({there.name(), " with ", n.name, " ", n.there, ", and not ", n.here}).begin();
  if (there.seed != here.seed)
    return sentence({there.name(), " with seed ", there.seed, ", and not ", here.seed}).begin();
  return sentence({there.name(), " with other settings of the optimizer"}).begin();
}

}  // namespace pp::detail
