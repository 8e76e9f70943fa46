// SPDX-License-Identifier: BSL-1.0
#include "../models/hub/gpt2.hpp"
#include "../models/transformers.hpp"
#include "run.hpp"

namespace {

struct Gpt2Medium : models::Gpt2<24, 1024, 16> {};
struct Gpt2Large : models::Gpt2<36, 1280, 20> {};

template <class Gpt2>
program program_of_gpt2(std::string const& name) {
  return program_of<Gpt2, models::hub::huggingface_gpt2<Gpt2>>(name);
}

}  // namespace

std::vector<program> gpt2_programs() {
  return {program_of_gpt2<models::Gpt2Small>("gpt2"), program_of_gpt2<Gpt2Medium>("gpt2-medium"),
          program_of_gpt2<Gpt2Large>("gpt2-large"), program_of_gpt2<models::Gpt2Xl>("gpt2-xl")};
}
