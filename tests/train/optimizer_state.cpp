// SPDX-License-Identifier: BSL-1.0
//
// Optimizer state in files under PyTorch's names: with the weights it resumes a run, and a file
// that does not fit changes nothing. tests/golden/optimizers.cpp has PyTorch's own numbers.
#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pipe/checkpoint/optimizer_state.hpp>

#include "laws/data.hpp"
#include "laws/resume_law.hpp"
#include "train/folder.hpp"
#include "train/system_calls.hpp"

using namespace pp;

namespace {

/// Shared, frozen and grouped parameters, joined projections, random bits.
struct Run : Model<Tokens<7, 4>, Named<"table", Embedding<6>>, Positions, Dropout<1, 5>,
                   Residual<LayerNorm, Attention<2>>,
                   Group<LearningRate<1, 2>, Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>>,
                   Frozen<Linear<6>>, Tied<"table">, CrossEntropy> {};
template <class... More>
using Of = Pipeline<Run, PortableHost, MicroBatches<4>, MicroBatchSize<2>, More...>;
using one = Of<AdamW>;
using folded = Of<AdamW, Stages<4>, ZeroBubbleV, HostThreads<2>, Averaging<9, 10>>;

struct Tiny : Model<Input<2>, Named<"a", Linear<1>>, MSE> {};
struct Wider : Model<Input<2>, Named<"a", Linear<3>>, MSE> {};
template <class M, class... More>
using Small = Pipeline<M, PortableHost, More...>;

/// n steps are k steps in A, both files, and n - k steps in B, which was in another run.
template <class A, class B>
void goes_on() {
  INFO(A::optimizer_type::name << ", " << B::plan().stage_count << " stages");
  temporary_folder const folder;
  A undisturbed(laws::settings_of<A>(1)), a(laws::settings_of<A>(1));
  B b(laws::settings_of<B>(1));
  b.step(laws::sample_batch<B>(51).view());
  for (std::uint64_t step = 1; step <= 2; ++step) laws::step_alike(undisturbed, a, step);
  save_weights(a, folder.file("weights"));
  save_optimizer_state(a, folder.file("a"));
  load_optimizer_state(b, folder.file("a"));
  load_weights(b, folder.file("weights"));  // in either order
  CHECK(b.steps() == 2);
  save_optimizer_state(b, folder.file("b"));
  CHECK(same_content(folder.file("a"), folder.file("b")));
  for (std::uint64_t step = 3; step <= 4; ++step) laws::step_alike(undisturbed, b, step);
  save_optimizer_state(undisturbed, folder.file("a"));
  save_optimizer_state(b, folder.file("b"));
  CHECK(same_content(folder.file("a"), folder.file("b")));
}

/// A trainer after two steps, and the file of its optimizer state.
template <class Trainer>
struct saved {
  temporary_folder folder;
  Trainer trainer{{.seed = 1}};
  std::string path = folder.file("state");
  std::optional<safetensors_file> file;
  std::vector<safetensors_entry> tensors;  // views of the file
  detail::safetensors_metadata metadata;

  saved() {
    for (std::uint64_t step = 1; step <= 2; ++step)
      trainer.step(laws::sample_batch<Trainer>(step).view());
    save_optimizer_state(trainer, path);
    file.emplace(path);
    tensors = file->tensors();
    metadata = file->metadata();
  }
  safetensors_entry& tensor(std::string const& name) {
    for (safetensors_entry& t : tensors)
      if (t.name == name) return t;
    FAIL("no tensor " << name);
    return tensors.front();
  }
  /// Numbers for a tensor, of its size.
  template <class T>
  void set(std::string const& name, files::stored_type type, std::vector<T> const& numbers) {
    static std::vector<std::vector<std::byte>> kept;
    auto const all = std::as_bytes(std::span(numbers));
    kept.emplace_back(all.begin(), all.end());
    tensor(name).type = type;
    tensor(name).bytes = kept.back();
  }
  /// What loading the tensors says.
  std::string said(std::optional<long> steps = {}, name_map const& names = {}) {
    write_safetensors(path, tensors, metadata);
    return sentence<data_error>([&] { load_optimizer_state(trainer, path, names, steps); });
  }
  std::string refused(std::string const& why) const { return "cannot load '" + path + "': " + why; }
  std::string misfit(std::string const& why) const {
    return "the optimizer states in '" + path + "' do not fit the trainer: " + why;
  }
  /// All of the trainer.
  std::string state() {
    trainer.save(folder.file("run"));
    return content(folder.file("run"));
  }
};
using adam = saved<Small<Tiny, AdamW>>;

}  // namespace

TEST_CASE("weights and optimizer state resume a run", "[train]") {
  goes_on<one, one>();
  goes_on<one, folded>();
  goes_on<folded, one>();
  goes_on<Of<SGD>, Of<SGD, Stages<5>>>();
  goes_on<Of<Adafactor>, Of<Adafactor, Stages<2>>>();
  goes_on<Of<Muon, Stages<3>>, Of<Muon>>();
  goes_on<Of<Adam, FP64>, Of<Adam, FP64>>();
}
TEST_CASE("names and shapes of optimizer state are PyTorch's", "[train]") {
  temporary_folder const folder;
  folded trainer;
  save_optimizer_state(trainer, folder.file("state"));
  safetensors_file const file(folder.file("state"));
  CHECK(file.metadata().at("optimizer") == "AdamW, beta1 = 0.9, beta2 = 0.999");
  auto const shape_of = [&](char const* name) {
    safetensors_entry const* const t = file.find(name);
    return t == nullptr ? std::vector<long>{-1} : t->shape;
  };
  CHECK(shape_of("state.table.weight.exp_avg") == std::vector<long>{7, 6});
  CHECK(shape_of("state.3.1.in_proj_weight.exp_avg_sq") == std::vector<long>{18, 6});
  CHECK(shape_of("state.4.1.weight.exp_avg") == std::vector<long>{9, 6});
  CHECK(shape_of("state.4.1.weight.step").empty());
  int parameters = 0;
  for (auto const& p : trainer.parameters()) {
    bool const trained = !p.gradients.empty();
    parameters += trained;
    for (char const* array : {"exp_avg", "exp_avg_sq", "step"})
      CHECK((file.find("state." + p.name + "." + array) != nullptr) == trained);
  }
  CHECK(file.tensors().size() == std::size_t(3 * parameters));
}
TEST_CASE("optimizer state has the names of a map", "[train]") {
  adam s;
  std::string const before = s.state();
  // [map]
  save_optimizer_state(s.trainer, s.path, {{"a.", "head."}});
  load_optimizer_state(s.trainer, s.path, {{"a.", "head."}});
  // [/map]
  CHECK(s.state() == before);
  CHECK(safetensors_file(s.path).find("state.head.weight.exp_avg") != nullptr);
  CHECK(s.said({}, {{"b.", "c."}}) ==
        "map of names: 'b.' -> 'c.' applies to no parameter of the model");
}
TEST_CASE("optimizer state of other types and with settings is loaded", "[train]") {
  adam s;
  std::string const before = s.state();
  s.set("state.a.weight.exp_avg", files::stored_type::f64, std::vector{1.5, -2.25});
  s.set<std::uint16_t>("state.a.bias.exp_avg_sq", files::stored_type::bf16, {0x3F80});
  s.set<std::uint16_t>("state.a.bias.step", files::stored_type::f16, {0x4700});
  s.set("state.a.weight.step", files::stored_type::f64, std::vector{7.0});
  std::vector<float> const rate{0.1f};
  s.tensors.push_back(
      {"param_groups.a.weight.lr", files::stored_type::f32, {}, std::as_bytes(std::span(rate))});
  s.metadata = {};
  CHECK(s.said() == "no error");
  CHECK(s.trainer.steps() == 7);
  save_optimizer_state(s.trainer, s.path);
  safetensors_file const file(s.path);
  std::vector<float> numbers(2);
  decode(files::stored_type::f32, file.find("state.a.weight.exp_avg")->bytes.data(),
         std::span(numbers));
  CHECK(numbers == std::vector{1.5f, -2.25f});
  decode(files::stored_type::f32, file.find("state.a.bias.exp_avg_sq")->bytes.data(),
         std::span(numbers).first(1));
  CHECK(numbers[0] == 1);
  CHECK(s.state() != before);
}
TEST_CASE("the number of steps is the file's, or that which is given", "[train]") {
  saved<Small<Tiny, SGD>> s;
  std::erase_if(s.tensors, [](auto const& t) { return t.name.ends_with(".step"); });
  CHECK(s.said() ==
        s.refused("no tensor state.NAME.step has the number of steps: give it as an argument"));
  CHECK(s.trainer.steps() == 2);
  CHECK(s.said(30) == "no error");
  CHECK(s.trainer.steps() == 30);
  // Beyond what F32 counts.
  CHECK(s.said((1L << 24) + 1) == "no error");
  CHECK(sentence<data_error>([&] { save_optimizer_state(s.trainer, s.path); }) ==
        "cannot save '" + s.path +
            "': PyTorch counts at most 16777216 steps, this trainer has made 16777217");
}
TEST_CASE("optimizer state that does not fit says why", "[train]") {
  adam s;
  std::string const before = s.state();
  SECTION("missing, and unknown") {
    s.tensor("state.a.weight.exp_avg").name = "state.a.weight.momentum_buffer";
    CHECK(s.said() == s.misfit("tensor 'state.a.weight.exp_avg': not in the file; tensor "
                               "'state.a.weight.momentum_buffer': not in the trainer"));
  }
  SECTION("of another shape or type") {
    s.tensor("state.a.weight.exp_avg").shape = {2, 1};
    s.tensor("state.a.bias.exp_avg").type = files::stored_type::i32;
    CHECK(s.said() ==
          s.misfit("tensor 'state.a.weight.exp_avg': expected shape [1, 2], found [2, 1]; tensor "
                   "'state.a.bias.exp_avg': expected F64, F32, F16 or BF16, found I32"));
  }
  SECTION("of another model") {
    Small<Wider, AdamW> wider;
    CHECK(sentence<data_error>([&] { load_optimizer_state(wider, s.path); }) ==
          s.misfit("tensor 'state.a.weight.exp_avg': expected shape [3, 2], found [1, 2]; "
                   "tensor 'state.a.weight.exp_avg_sq': expected shape [3, 2], found [1, 2]; "
                   "tensor 'state.a.bias.exp_avg': expected shape [3], found [1]; "
                   "tensor 'state.a.bias.exp_avg_sq': expected shape [3], found [1]"));
  }
  SECTION("of another optimizer") {
    Small<Tiny, Adam> other;
    CHECK(sentence<data_error>([&] { load_optimizer_state(other, s.path); }) ==
          s.refused("it has the state of AdamW, beta1 = 0.9, beta2 = 0.999, this trainer has "
                    "Adam, beta1 = 0.9, beta2 = 0.999"));
  }
  SECTION("with other numbers of steps") {
    s.set("state.a.bias.step", files::stored_type::f32, std::vector{3.0f});
    CHECK(s.said() == s.refused("tensor 'state.a.weight.step': 2 steps, but 3 in tensor "
                                "'state.a.bias.step'"));
    for (float const n : {2.5f, -1.0f, 1e30f, std::numeric_limits<float>::quiet_NaN()}) {
      s.set("state.a.bias.step", files::stored_type::f32, std::vector{n});
      CHECK(s.said() == s.refused("tensor 'state.a.bias.step': expected a number of steps, found " +
                                  std::string(pp::detail::real_text(n, 9))));
    }
    s.set("state.a.bias.step", files::stored_type::i64, std::vector{2L});
    CHECK(s.said() == s.refused("tensor 'state.a.bias.step': expected one F64, F32, F16 or BF16, "
                                "found I64 of shape []"));
  }
  SECTION("with a number of steps that is not the one given") {
    CHECK(s.said(3) == s.refused("tensor 'state.a.bias.step': 2 steps, but 3 in the argument"));
  }
  SECTION("with a number that is too large") {
    s.set("state.a.bias.exp_avg", files::stored_type::f64, std::vector{1e300});
    CHECK(s.said() == s.misfit("tensor 'state.a.bias.exp_avg': number 0 is too large for F32"));
  }
  SECTION("weights, and no file") {
    save_weights(s.trainer, s.path);
    CHECK(sentence<data_error>([&] { load_optimizer_state(s.trainer, s.path); }) ==
          s.refused("no tensor state.NAME.step has the number of steps: give it as an argument"));
    CHECK(sentence<file_error>([&] { load_optimizer_state(s.trainer, s.folder.file("no")); }) ==
          "cannot read '" + s.folder.file("no") + "': No such file or directory");
    CHECK(sentence<file_error>([&] {
            save_optimizer_state(s.trainer, s.folder.file("no/a"));
          }).find("No such file or directory") != std::string::npos);
  }
  CHECK(s.state() == before);
}
TEST_CASE("memory that ends while optimizer state is loaded changes nothing", "[train]") {
  adam s;
  Small<Tiny, AdamW> fresh;
  fresh.save(s.folder.file("run"));
  std::string const before = content(s.folder.file("run"));
  int failures = 0;
  for (; failing_allocation::happened(failures, [&] { load_optimizer_state(fresh, s.path); });
       ++failures) {
    fresh.save(s.folder.file("run"));
    CHECK(content(s.folder.file("run")) == before);
  }
  CHECK(failures > 20);
  CHECK(fresh.steps() == 2);
}
