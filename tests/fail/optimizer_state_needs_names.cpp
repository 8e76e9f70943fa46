// error: wrong::optimizer_state_needs_names,
// SPDX-License-Identifier: BSL-1.0
//
// Optimizer state goes to PyTorch under the names of its arrays, which this optimizer does not say.
#include <pipe/checkpoint/optimizer_state.hpp>
#include <pipe/pipe.hpp>

using namespace pp;

struct Follow {
  double learning_rate = 0.1;
  static constexpr char const* name = "Follow";
  static constexpr int states = 1;
#ifdef PIPE_EXPECT_OK
  static constexpr custom::named_states states_of(custom::tensor_kind) { return {{"followed"}}; }
#endif
  template <class T>
  struct coefficients {
    T rate;
  };
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.learning_rate)};
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g, T& m) {
    m = m + g;
    return w - c.rate * m;
  }
};
struct Net : Model<Input<3>, Linear<2>, MSE> {};

void hand_over(Pipeline<Net, PortableHost, Follow>& trainer) {
  save_optimizer_state(trainer, "state.safetensors");
  load_optimizer_state(trainer, "state.safetensors");
}
