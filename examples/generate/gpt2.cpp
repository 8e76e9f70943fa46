// SPDX-License-Identifier: BSL-1.0
#include "../models/hub/gpt2.hpp"
#include "../models/transformers.hpp"
#include "run.hpp"

namespace {
struct Gpt2Medium : models::Gpt2<24, 1024, 16> {};
struct Gpt2Large : models::Gpt2<36, 1280, 20> {};
}  // namespace

std::vector<program> gpt2_programs() {
  using models::gpt2_names;
  return {program_of<models::Gpt2Small, gpt2_names>("gpt2"),
          program_of<Gpt2Medium, gpt2_names>("gpt2-medium"),
          program_of<Gpt2Large, gpt2_names>("gpt2-large"),
          program_of<models::Gpt2Xl, gpt2_names>("gpt2-xl")};
}
