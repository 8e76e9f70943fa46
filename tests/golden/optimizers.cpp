// SPDX-License-Identifier: BSL-1.0
//
// Ten steps of every optimizer against PyTorch: losses, gradient norms, and the parameters after
// the first and the last step. The cases are OPTIMIZERS in write_golden.py; what is not a default
// there comes from the file. Of PyTorch's own optimizers also the state after five steps, from
// which the run goes on here.
#include <optional>

#include <pipe/checkpoint/optimizer_state.hpp>

#include "golden/record.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

/// Embedding and positions are tables, there are matrices of all proportions, biases, a scale and a
/// shift.
struct Net : Model<Tokens<7, 3>, Embedding<6>, Positions, Linear<9>, LayerNorm, Tanh,
                   Linear<5, NoBias>, Linear<4>, MSE> {};

/// Hands out a case's settings by name.
class settings_of {
 public:
  explicit settings_of(golden::record const& of) : of_(of) {}

  template <class T>
  void take(std::string const& name, T& to) {
    if (!of_.has("setting." + name)) return;
    to = static_cast<T>(of_.numbers<double>("setting." + name).at(0));
    ++taken_;
  }
  bool all_taken() const { return taken_ == of_.count("setting."); }

 private:
  golden::record const& of_;
  int taken_ = 0;
};

/// Calls take(name, setting) for every setting that o has.
template <class Take, class Optimizer>
void each_setting(Take const& take, Optimizer& o, std::string const& of = "") {
  take(of + "learning_rate", o.learning_rate);
  take(of + "weight_decay", o.weight_decay);
  if constexpr (requires { o.beta1; }) take(of + "beta1", o.beta1), take(of + "beta2", o.beta2);
  if constexpr (requires { o.momentum_decay; }) take(of + "momentum_decay", o.momentum_decay);
  if constexpr (requires { o.epsilon; }) take(of + "epsilon", o.epsilon);
  if constexpr (requires { o.momentum; }) take(of + "momentum", o.momentum);
  if constexpr (requires { o.nesterov; }) take(of + "nesterov", o.nesterov);
  if constexpr (requires { o.alpha; }) take(of + "alpha", o.alpha);
  if constexpr (requires { o.initial_accumulator_value; }) {
    take(of + "learning_rate_decay", o.learning_rate_decay);
    take(of + "initial_accumulator_value", o.initial_accumulator_value);
  }
  if constexpr (requires { o.beta2_decay; }) {
    take(of + "beta2_decay", o.beta2_decay), take(of + "threshold", o.threshold);
    take(of + "epsilon1", o.epsilon1), take(of + "epsilon2", o.epsilon2);
  }
  if constexpr (requires { o.newton_schulz_steps; }) {
    take(of + "a", o.a), take(of + "b", o.b), take(of + "c", o.c);
    take(of + "newton_schulz_steps", o.newton_schulz_steps), take(of + "adjust", o.adjust);
    each_setting(take, o.others, of + "others.");
  }
}

golden::record start() { return {"optimizers", "start"}; }
constexpr int steps = 10;
/// The iteration makes all directions of a matrix equally long, so what bfloat16 rounds is a few
/// percent of the result; and where a gradient has no part in some direction, that direction is
/// made of nothing else. Here 5.weight has such a one.
constexpr double bfloat16_tolerance = 0.2;

template <class Optimizer, class... More>
using Trainer = Pipeline<Net, Optimizer, PortableHost, MicroBatches<2>, MicroBatchSize<2>, More...>;

/// A trainer with a case's settings and the parameters that all cases start from.
template <class T>
T begin(golden::record const& theirs) {
  typename T::settings s;
  settings_of given(theirs);
  each_setting([&](std::string const& name, auto& to) { given.take(name, to); }, s.optimizer);
  given.take("clip_norm", s.clip_norm);
  given.take("clip_value", s.clip_value);
  double decay = 0;
  given.take("decay", decay);
  REQUIRE(decay == T::compiled::averaging::decay);
  REQUIRE(given.all_taken());
  return T(s);
}

template <class T>
void check_parameters(golden::record const& theirs, std::string const& what, T& trainer,
                      std::vector<parameter_view<float>> const& ours) {
  auto const wanted = theirs.of_trained(trainer, what);
  for (std::size_t i = 0; i < ours.size(); ++i)
    golden::check_near(theirs.name() + ": " + what + " of " + ours[i].name, ours[i].values,
                       wanted[i]);
}

template <class Optimizer, class... More>
void check(char const* name) {
  using trainer = Trainer<Optimizer, More...>;
  golden::record const theirs("optimizers", name);
  golden::batches<trainer> const data(start());
  trainer t = begin<trainer>(theirs);
  start().load(t);
  std::vector<double> losses, norms;
  for (int step = 1; step <= steps; ++step) {
    step_result const r = t.step(data[std::size_t(step - 1)]);
    losses.push_back(r.loss), norms.push_back(r.gradient_norm);
    if (step != 1 && step != steps) continue;
    check_parameters(theirs, "step_" + std::to_string(step), t, t.parameters());
    if constexpr (trainer::compiled::averaging::averages)
      check_parameters(theirs, "average_" + std::to_string(step), t, t.averaged());
  }
  golden::check_near(theirs.name() + ": loss", losses, theirs.numbers<double>("loss"));
  golden::check_near(theirs.name() + ": norm", norms, theirs.numbers<double>("norm"));
}

/// Numbers of steps are those of the trainer.
bool counts_steps(std::string const& tensor) { return tensor.ends_with(".step"); }

/// The state of five steps here is PyTorch's. counts: whether PyTorch's optimizer counts steps
template <class Optimizer>
void check_saved(char const* name, bool counts) {
  using trainer = Trainer<Optimizer>;
  golden::record const theirs("optimizers", name);
  golden::batches<trainer> const data(start());
  trainer t = begin<trainer>(theirs);
  start().load(t);
  for (std::size_t step = 0; step < steps / 2; ++step) t.step(data[step]);
  temporary_folder const folder;
  save_optimizer_state(t, folder.file("state"));
  safetensors_file const ours(folder.file("state"));
  int found = 0;
  for (safetensors_entry const& tensor : ours.tensors()) {
    INFO(tensor.name);
    std::string const there = "state_5/" + tensor.name;
    if (!theirs.has(there)) {
      CHECK(counts_steps(tensor.name));  // of a parameter whose optimizer in PyTorch has none
      continue;
    }
    ++found;
    CHECK(tensor.shape == theirs.shape(there));
    std::vector<float> numbers(tensor.bytes.size() / sizeof(float));
    decode(tensor.type, tensor.bytes.data(), std::span(numbers));
    golden::check_near(theirs.name() + ": " + there, numbers, theirs.numbers<float>(there));
    if (counts_steps(tensor.name)) CHECK(numbers.at(0) == steps / 2);
  }
  CHECK(found == theirs.count("state_5/"));
  CHECK(theirs.count("state_5/state.0.weight.step") == (counts ? 1 : 0));
}

/// Five steps there, and five here from their state, are ten there.
template <class Optimizer>
void check_loaded(char const* name, std::optional<long> steps_there = {}) {
  using trainer = Trainer<Optimizer, Stages<2>>;
  golden::record const theirs("optimizers", name);
  golden::batches<trainer> const data(start());
  temporary_folder const folder;
  write_safetensors(folder.file("state"), theirs.tensors("state_5/"));
  trainer t = begin<trainer>(theirs);
  t.step(data[0]);  // of which nothing must be left
  theirs.load(t, "step_5");
  load_optimizer_state(t, folder.file("state"), {}, steps_there);
  CHECK(t.steps() == steps / 2);
  std::vector<double> losses;
  for (std::size_t step = steps / 2; step < steps; ++step)
    losses.push_back(t.step(data[step]).loss);
  auto const all = theirs.numbers<double>("loss");
  golden::check_near(theirs.name() + ": loss", losses, std::vector(all.begin() + 5, all.end()));
  check_parameters(theirs, "step_10", t, t.parameters());
}
template <class Optimizer>
void check_state(char const* name) {
  check_saved<Optimizer>(name, true);
  check_loaded<Optimizer>(name);
}

}  // namespace

TEST_CASE("optimizer state is PyTorch's, both ways", "[golden]") {
  check_state<Adam>("adam");
  check_state<AdamW>("adamw");
  check_state<NAdam>("nadam.decay");
  check_state<Adamax>("adamax");
  check_state<RMSprop>("rmsprop");  // without momentum, whose buffer PyTorch then lacks
  check_state<RMSprop>("rmsprop.momentum");
  check_state<CenteredRMSprop>("centered_rmsprop.momentum");
  check_state<Adagrad>("adagrad.decay");
  check_state<Adafactor>("adafactor");
  check_state<Muon>("muon");
  check_saved<SGD>("sgd.momentum", false);
  check_loaded<SGD>("sgd.momentum", 5);
}
TEST_CASE("the product of NAdam's momenta says by which settings state was made", "[golden]") {
  using trainer = Trainer<NAdam>;
  temporary_folder const folder;
  write_safetensors(folder.file("state"),
                    golden::record("optimizers", "nadam.decay").tensors("state_5/"));
  trainer t({.optimizer = {.beta1 = 0.99}});
  CHECK_THROWS_WITH(load_optimizer_state(t, folder.file("state")),
                    Catch::Matchers::Contains("mu_product") &&
                        Catch::Matchers::Contains("after 5 steps, which other settings"));
  CHECK(t.steps() == 0);
}
TEST_CASE("SGD is torch.optim.SGD", "[golden]") {
  check<SGD>("sgd");
  check<SGD>("sgd.momentum");
  check<SGD>("sgd.nesterov");
}
TEST_CASE("Adam is torch.optim.Adam", "[golden]") {
  check<Adam>("adam");
  check<Adam>("adam.decay");
}
TEST_CASE("AdamW is torch.optim.AdamW", "[golden]") {
  check<AdamW>("adamw");
  check<AdamW>("adamw.decay");
}
TEST_CASE("NAdam is torch.optim.NAdam with decoupled weight decay", "[golden]") {
  check<NAdam>("nadam");
  check<NAdam>("nadam.decay");
}
TEMPLATE_TEST_CASE("without momentum no buffer of it is written or read", "[golden]", RMSprop,
                   SGD) {
  bool const is_sgd = std::is_same_v<TestType, SGD>;
  golden::record const theirs("optimizers", is_sgd ? "sgd.momentum" : "rmsprop.momentum");
  temporary_folder const folder;
  write_safetensors(folder.file("state"), theirs.tensors("state_5/"));
  Trainer<TestType> with({.optimizer = {.momentum = 0.5}}), without;
  auto const counts = is_sgd ? std::optional(5L) : std::nullopt;  // PyTorch counts no steps of SGD
  load_optimizer_state(without, folder.file("state"), {}, counts);
  CHECK(without.steps() == 5);
  save_optimizer_state(without, folder.file("less"));
  safetensors_file const less(folder.file("less"));
  for (auto const& t : less.tensors()) CHECK(!t.name.ends_with("momentum_buffer"));
  CHECK_THROWS_WITH(load_optimizer_state(with, folder.file("less")),
                    Catch::Matchers::Contains("momentum_buffer"));
  CHECK(with.steps() == 0);
  load_optimizer_state(with, folder.file("state"), {}, counts);
  CHECK(with.steps() == 5);
}
TEST_CASE("Adamax is torch.optim.Adamax", "[golden]") {
  check<Adamax>("adamax");
  check<Adamax>("adamax.decay");
}
TEST_CASE("RMSprop is torch.optim.RMSprop", "[golden]") {
  check<RMSprop>("rmsprop");
  check<RMSprop>("rmsprop.momentum");
}
TEST_CASE("CenteredRMSprop is torch.optim.RMSprop with centered=True", "[golden]") {
  check<CenteredRMSprop>("centered_rmsprop");
  check<CenteredRMSprop>("centered_rmsprop.momentum");
}
TEST_CASE("Adagrad is torch.optim.Adagrad", "[golden]") {
  check<Adagrad>("adagrad");
  check<Adagrad>("adagrad.decay");
}
TEST_CASE("Adafactor is torch.optim.Adafactor", "[golden]") {
  check<Adafactor>("adafactor");
  check<Adafactor>("adafactor.decay");
}
TEST_CASE("Lion is that of its paper", "[golden]") {
  check<Lion>("lion");
  check<Lion>("lion.decay");
}
TEST_CASE("LAMB is that of its paper", "[golden]") {
  check<LAMB>("lamb");
  check<LAMB>("lamb.decay");
}
TEST_CASE("Muon is torch.optim.Muon, were that not in bfloat16", "[golden]") {
  check<Muon>("muon");
  check<Muon>("muon.adamw_rate");
  check<Muon>("muon.spectral");
}
TEST_CASE("the first step of torch.optim.Muon as it is differs in what bfloat16 rounds",
          "[golden]") {
  using trainer = Trainer<Muon>;
  golden::record const theirs("optimizers", "muon.bfloat16");
  golden::batches<trainer> const data(start());
  trainer t = begin<trainer>(theirs);
  start().load(t);
  t.step(data[0]);
  auto const ours = t.parameters();
  auto const before = start().of_trained(t, "weight"), after = theirs.of_trained(t, "step_1");
  for (std::size_t i = 0; i < ours.size(); ++i) {
    std::vector<double> moved, wanted;
    for (std::size_t e = 0; e < before[i].size(); ++e) {
      moved.push_back(double(ours[i].values[e]) - double(before[i][e]));
      wanted.push_back(double(after[i][e]) - double(before[i][e]));
    }
    bool const is_matrix = Net::graph.parameters[ours[i].index].kind == custom::tensor_kind::matrix;
    golden::check_near("muon.bfloat16: what moved " + ours[i].name, moved, wanted,
                       is_matrix ? bfloat16_tolerance : golden::tolerance);
  }
}
TEST_CASE("clipping is PyTorch's", "[golden]") {
  check<SGD>("clip_norm");
  check<SGD>("clip_value");
  check<SGD>("clip_both");
}
TEST_CASE("averages are those of torch.optim.swa_utils", "[golden]") {
  check<AdamW, Averaging<9, 10>>("averages");
}
