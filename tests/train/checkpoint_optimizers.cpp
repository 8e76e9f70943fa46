// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints of every optimizer, also of those that a program defines.
#include "catch.hpp"

#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>

#include "laws/own_optimizer.hpp"
#include "laws/resume_law.hpp"

using namespace pp;
using laws::resumes;

namespace {

/// A part of every kind.
struct Small : Model<Input<3>, Linear<7>, Tanh, LayerNorm, Linear<2>, MSE> {};
template <class Optimizer>
using Trained = Pipeline<Small, PortableHost, Optimizer, MicroBatches<2>, Stages<2>>;

/// A user-defined optimizer of whole tensors: the parameter follows its own mean, which is kept.
struct Shrinking {
  double learning_rate = 0.1;
  static constexpr char const* name = "Shrinking";
  static constexpr bool takes(custom::tensor_kind) { return true; }
  static constexpr long state_elements(custom::tensor_shape const& s) { return s.rows + 1; }
  template <class Backend, class T>
  static constexpr long workspace_elements(custom::tensor_shape const&) {
    return 0;
  }
  template <class Kernels, class T>
  void update(Kernels, custom::update_context const& c, custom::tensor_update<T> const& t) const {
    for (long r = 0; r < t.shape.rows; ++r)
      for (long i = r * t.shape.columns; i < (r + 1) * t.shape.columns; ++i) {
        t.state[r] += t.values[i] / T(t.shape.columns);
        t.state[t.shape.rows] += t.gradients[i];
        t.values[i] -= T(c.learning_rate) * (t.gradients[i] + T(0.01) * t.state[r]);
      }
  }
};
/// A user-defined optimizer by element, whose states have no names.
struct Slow {
  double learning_rate = 0.1;
  static constexpr char const* name = "Slow";
  static constexpr int states = 2;
  template <class T>
  struct coefficients {
    T rate;
  };
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.learning_rate * c.gradient_scale)};
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& a, T& b) {
    a += g, b += a;
    return w - c.rate * (g + T(0.1) * a + T(0.01) * b);
  }
};
struct NamedSlow : Slow {
  double decay = 0.9;
  // [names]
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return {{"first"}, {"second"}};
  }
  /// The state of another decay is refused.
  template <class Use>
  constexpr void for_each_state_setting(Use use) const {
    use("decay", decay);
  }
  // [/names]
};

}  // namespace

TEST_CASE("a run of every optimizer is resumed", "[train]") {
  resumes<Trained<SGD>, Trained<SGD>>();
  resumes<Trained<Adam>, Trained<Adam>>();
  resumes<Trained<Lion>, Trained<Lion>>(1);
  resumes<Trained<LAMB>, Trained<LAMB>>();
  resumes<Trained<Adafactor>, Trained<Adafactor>>();
  resumes<Trained<Muon>, Trained<Muon>>();
  resumes<Trained<NAdam>, Trained<NAdam>>(1);
  resumes<Trained<Adamax>, Trained<Adamax>>(1);
  resumes<Trained<RMSprop>, Trained<RMSprop>>(1);
  resumes<Trained<CenteredRMSprop>, Trained<CenteredRMSprop>>();
  resumes<Trained<Adagrad>, Trained<Adagrad>>();
  resumes<Trained<ErrorFeedback<Muon>>, Trained<ErrorFeedback<Muon>>>();
  resumes<Trained<laws::Normed>, Trained<laws::Normed>>();
  resumes<Trained<Shrinking>, Trained<Shrinking>>();
  resumes<Trained<Slow>, Trained<Slow>>();
  Trained<NamedSlow> t;
  temporary_folder const folder;
  t.save(folder.file("a"));
  safetensors_reader const file(folder.file("a"));
  CHECK(file.metadata().at("optimizer") == "Slow, decay = 0.9");
  std::vector<std::string> names;
  for (auto const& tensor : file.tensors())
    if (tensor.name.starts_with("optimizer/")) names.push_back(tensor.name);
  REQUIRE(names.size() == 12);
  CHECK(names[0] == "optimizer/first/0.weight");
  CHECK(names[1] == "optimizer/second/0.weight");
}
