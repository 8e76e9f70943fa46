// SPDX-License-Identifier: BSL-1.0
#include "../models/hub/llama.hpp"
#include "../models/transformers.hpp"
#include "run.hpp"

std::vector<program> llama_programs() {
  using models::llama_names, models::tied_llama_names;
  return {program_of<models::SmolLm135M, tied_llama_names>("smollm-135m"),
          program_of<models::TinyLlama, llama_names>("tinyllama"),
          program_of<models::Llama2x7B, llama_names>("llama2-7b"),
          program_of<models::Llama3x8B, llama_names>("llama3-8b")};
}
