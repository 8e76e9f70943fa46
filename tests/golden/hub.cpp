// SPDX-License-Identifier: BSL-1.0
//
// Files of GPT-2 and LLaMA, as the package transformers writes them, through the maps of names of
// examples/models/hub: a decoder has the package's logits, and goes on with its text.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <pipe/infer/generate.hpp>
#include <pipe/infer/model_weights.hpp>

#include "../../examples/models/hub/gpt2.hpp"
#include "../../examples/models/hub/llama.hpp"
#include "../../examples/models/transformers.hpp"
#include "golden/record.hpp"
#include "message_of.hpp"
#include "train/folder.hpp"

using namespace pp;
using namespace models::hub;

namespace {

struct SmallGpt2 : models::Gpt2<2, 12, 3, 37, 24> {};
struct SmallLlama
    : models::Llama<2, 16, 40, 4, 2, 41, 500000, Named<"lm_head", Linear<41, NoBias>>, 24> {};
struct WiderGpt2 : models::Gpt2<2, 16, 4, 37, 24> {};

std::string path_of(std::string const& name) { return PIPE_TESTS_FOLDER "/golden/hub/" + name; }

template <class M>
model_weights<M> loaded(std::string const& path, name_map const& names) {
  model_weights<M> weights;
  load_weights(weights, path, load_policy::strict, names);
  return weights;
}

template <class M>
void check(std::string const& name, name_map const& names) {
  auto weights = loaded<M>(path_of(name), names);
  golden::record const theirs("hub", name);
  std::vector<int> const tokens = theirs.ids("tokens"), text = theirs.ids("greedy");
  decoder read(weights);
  std::vector<float> logits;
  for (int const token : tokens) {
    auto const next = read.read(token);
    logits.insert(logits.end(), next.begin(), next.end());
  }
  golden::check_near(name, logits, theirs.numbers<double>("logits"));
  std::span const prompt = std::span(text).first(7);
  CHECK(generate(read, prompt, {.tokens = 17, .sampling = {.temperature = 0}}) ==
        std::vector(text.begin() + 7, text.end()));
}

}  // namespace

TEST_CASE("files of hubs have the logits and the text of transformers", "[golden]") {
  check<SmallGpt2>("gpt2", huggingface_gpt2<SmallGpt2>());
  check<SmallLlama>("llama", huggingface_llama<SmallLlama>());
}

TEST_CASE("weights that are saved under the names of a hub are loaded again", "[golden]") {
  temporary_folder const folder;
  std::string const path = folder.file("model.safetensors");
  auto weights = loaded<SmallGpt2>(path_of("gpt2"), huggingface_gpt2<SmallGpt2>());
  for (std::string const prefix : {"", "transformer."}) {
    save_weights(weights, path, huggingface_gpt2<SmallGpt2>(prefix));
    weight_files const files(std::filesystem::path(path).parent_path().string());
    CHECK(files.has(prefix + "h.1.attn.c_attn.weight"));
    auto again = loaded<SmallGpt2>(files.name(), huggingface_gpt2<SmallGpt2>(files));
    auto const ours = weights.parameters(), theirs = again.parameters();
    for (std::size_t i = 0; i < ours.size(); ++i)
      CHECK(std::ranges::equal(ours[i].values, theirs[i].values));
  }
}

TEST_CASE("files of another model are refused in one sentence", "[golden]") {
  auto const said = [](std::string const& path) {
    return message_of<error>([&] { loaded<SmallGpt2>(path, huggingface_gpt2<SmallGpt2>()); });
  };
  CHECK(message_of<data_error>(
            [] { loaded<WiderGpt2>(path_of("gpt2"), huggingface_gpt2<WiderGpt2>()); })
            .find("tensor 'wte.weight': expected shape [37, 16], found [37, 12]; "
                  "tensor 'wpe.weight': expected shape [24, 16], found [24, 12]") !=
        std::string::npos);
  CHECK(said(path_of("llama")).find("parameter 'wte.weight': not in the file") !=
        std::string::npos);
  CHECK(said(path_of("none")).find("cannot read '" + path_of("none")) == 0);
  CHECK(said(path_of("")) ==
        "'" + path_of("") + "' has neither model.safetensors nor model.safetensors.index.json");
}
