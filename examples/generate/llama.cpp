// SPDX-License-Identifier: BSL-1.0
#include "../models/hub/llama.hpp"
#include "../models/transformers.hpp"
#include "run.hpp"

namespace {

template <class Llama>
pp::name_map names(pp::weight_files const&) {
  return models::hub::huggingface_llama<Llama>();
}
template <class Llama>
program program_of_llama(std::string const& name) {
  return program_of<Llama, names<Llama>>(name);
}

}  // namespace

std::vector<program> llama_programs() {
  return {program_of_llama<models::SmolLm135M>("smollm-135m"),
          program_of_llama<models::TinyLlama>("tinyllama"),
          program_of_llama<models::Llama2x7B>("llama2-7b"),
          program_of_llama<models::Llama3x8B>("llama3-8b")};
}
