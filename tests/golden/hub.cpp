// SPDX-License-Identifier: BSL-1.0
//
// Files of GPT-2 and LLaMA, as the package transformers writes them, through the maps of names of
// examples/models/hub: a decoder has the package's logits, and goes on with its text.
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

namespace {

struct SmallGpt2 : models::Gpt2<2, 12, 3, 37, 24> {};
struct SmallLlama
    : models::Llama<2, 16, 40, 4, 2, 41, 500000, Named<"lm_head", Linear<41, NoBias>>, 24> {};
struct WiderGpt2 : models::Gpt2<2, 16, 4, 37, 24> {};

std::string path_of(std::string const& name) { return PIPE_TESTS_FOLDER "/golden/hub/" + name; }

template <class M>
model_weights<M> loaded(std::string const& path, models::hub_map const& map) {
  model_weights<M> weights;
  load_hub_weights(weights, models::hub_files(path, map.prefix), map);
  return weights;
}

template <class M>
void check(std::string const& name, models::hub_map const& map) {
  auto weights = loaded<M>(path_of(name), map);
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
  check<SmallGpt2>("gpt2", models::gpt2_names);
  check<SmallLlama>("llama", models::llama_names);
}

TEST_CASE("weights that are saved under the names of a hub are loaded again", "[golden]") {
  temporary_folder const folder;
  std::string const path = folder.file("model.safetensors");
  auto weights = loaded<SmallGpt2>(path_of("gpt2"), models::gpt2_names);
  save_hub_weights(weights, path, models::gpt2_names);
  auto again = loaded<SmallGpt2>(std::filesystem::path(path).parent_path(), models::gpt2_names);
  auto const ours = weights.parameters(), theirs = again.parameters();
  for (std::size_t i = 0; i < ours.size(); ++i)
    CHECK(std::ranges::equal(ours[i].values, theirs[i].values));
}

TEST_CASE("files of another model are refused in one sentence", "[golden]") {
  CHECK(message_of<data_error>([] { loaded<WiderGpt2>(path_of("gpt2"), models::gpt2_names); })
            .find("'wte.weight': expected shape [37, 16], found [37, 12]; "
                  "'wpe.weight': expected shape [24, 16], found [24, 12]") != std::string::npos);
  std::string const other =
      message_of<data_error>([] { loaded<SmallLlama>(path_of("gpt2"), models::llama_names); });
  CHECK(other.find("'embed_tokens.weight' is missing") != std::string::npos);
  CHECK(message_of<file_error>([] {
          loaded<SmallGpt2>(path_of("none"), models::gpt2_names);
        }).find("cannot read '" + path_of("none")) == 0);
  CHECK(message_of<file_error>([] { loaded<SmallGpt2>(path_of(""), models::gpt2_names); }) ==
        "'" + path_of("") + "' has neither model.safetensors nor model.safetensors.index.json");
  temporary_folder const folder;
  std::string const index = folder.file("model.safetensors.index.json");
  for (auto const& [text, says] :
       {std::pair{"{\"weight_map\": {\"a\": \"../b\"}}", "'../b' is not a file beside it"},
        std::pair{"{\"metadata\": {}}", "names no file"},
        std::pair{"{\"weight_map\": {\"a\": \"b.safetensors\"}}", "b.safetensors"}}) {
    std::ofstream(index) << text;
    CHECK(message_of<error>([&] { loaded<SmallGpt2>(index, models::gpt2_names); }).find(says) !=
          std::string::npos);
  }
}
