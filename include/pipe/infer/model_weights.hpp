// SPDX-License-Identifier: BSL-1.0
//
// The parameters of a model without a trainer: for models that only run. A trainer has room for
// gradients, activations and optimizer states, and compiles its kernels; this has the weights.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <span>
#include <vector>

#include <pipe/backend/host/backend.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/train/parts/view_parameters.hpp>
#include <pipe/weights/named_parameter.hpp>
#include <pipe/weights/names.hpp>
#include <pipe/weights/parameter_view.hpp>

namespace pp {

/// The weights of a model, for load_weights, save_weights, copy_weights, decoder and generate.
///
///     model_weights<GPT> weights;
///     load_weights(weights, "gpt.safetensors");
///     generate(weights, prompt, {.tokens = 100});
///
/// law: memory is that of the parameters, each shared one once; constant tables are not kept
/// law: all are 0 until they are written; after a load that failed to read a file, some are
/// law: names, shapes and order are those of a trainer of the model
template <class Model, class T = float, class Backend = Host>
class model_weights {
 public:
  using model = Model;
  using element = T;
  /// For load_weights, which then needs no memory for a second copy.
  static constexpr bool is_read_in_place = true;
  /// Where a decoder looks for the kernels' backend.
  struct compiled {
    using backend = Backend;
  };

  /// Allocates all of them. Throws std::bad_alloc.
  model_weights() {
    auto const& g = Model::graph;
    for (int i = 0; i < g.size.parameters; ++i) {
      detail::parameter const& p = g.parameters[i];
      if (p.tied_to >= 0 || detail::is_table(p.initial.kind)) continue;
      detail::heap_array<T>& values = memory_.emplace_back(p.elements());
      views_.push_back(
          detail::view_of_parameter<Model, T>(i, {values.begin(), std::size_t(values.size())}));
    }
  }

  /// Views of all parameters in model order, as those of a trainer; they have no gradients.
  std::vector<parameter_view<T>> parameters() { return views_; }
  /// For load_weights and copy_weights. Nothing depends on the parameters.
  void parameters_changed() {}
  detail::only_process processes() const { return {}; }
  /// Bytes of the parameters.
  long bytes() const {
    long sum = 0;
    for (auto const& values : memory_) sum += values.size() * long(sizeof(T));
    return sum;
  }

 private:
  std::vector<detail::heap_array<T>> memory_;
  std::vector<parameter_view<T>> views_;
};

}  // namespace pp
