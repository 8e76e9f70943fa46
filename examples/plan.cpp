// SPDX-License-Identifier: BSL-1.0
//
// What well-known models would need in a pipeline: parameters, memory by kind and rank, launches
// and the schedule, planned by the passes that plan every Pipeline, but when this program runs and
// without a byte for a parameter.
//
//     examples/run.sh plan                  all models, a line each
//     examples/run.sh plan gpipe-83.9b      everything about one
//     examples/run.sh plan gpt2-124m --problem gpt2.json
//                                           its scheduling problem, for examples/run.sh schedules
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/problem_file.hpp>
#include <pipe/report/write_file.hpp>

namespace {

using namespace pp;

/// A Transformer's layer: attention, then two products with a GELU between them.
template <int Width, int Heads>
using Layer = Seq<Residual<LayerNorm, Attention<Heads>>,
                  Residual<LayerNorm, Linear<4 * Width>, GELUTanh, Linear<Width>>>;

// GPT-2 small: Radford et al., 2019. The head shares the table of the embedding.
struct Gpt2 : Model<Tokens<50257, 1024>, Named<"tokens", Embedding<768>>, Positions,
                    Repeat<12, Layer<768, 12>>, LayerNorm, Tied<"tokens">, CrossEntropy> {};

// The 8.3 billion parameters of Shoeybi et al., Megatron-LM, 2019, table 2, on stages instead of
// tensor parallelism.
struct Megatron : Model<Tokens<51200, 1024>, Named<"tokens", Embedding<3072>>, Positions,
                        Repeat<72, Layer<3072, 24>>, LayerNorm, Tied<"tokens">, CrossEntropy> {};

// [large]
// The largest Transformer of Huang et al., GPipe, 2019, table 1: 1663 layers on 128 stages.
struct GPipeTransformer
    : Model<Tokens<32000, 1024>, Embedding<2048>, Positions, Repeat<1663, Layer<2048, 32>>,
            LayerNorm, Linear<32000>, CrossEntropy> {};

using Large = Planned<GPipeTransformer, Stages<128>, MicroBatches<512>, GPipe, RecomputeAll, AdamW>;
// [/large]

// GPT-3: Brown et al., 2020, on 48 ranks of two chunks each.
struct Gpt3 : Model<Tokens<50257, 2048>, Named<"tokens", Embedding<12288>>, Positions,
                    Repeat<96, Layer<12288, 96>>, LayerNorm, Tied<"tokens">, CrossEntropy> {};

template <class P>
void add_line(console::text_table& table, char const* name) {
  auto const& plan = P::plan();
  long most = 0, launches = 0;
  for (long const bytes : plan.rank_bytes) most = bytes > most ? bytes : most;
  for (stage_plan const& s : plan.stages) launches += s.forward_kernels + s.backward_kernels;
  table.add({name, console::readable_count(plan.parameters), std::to_string(plan.stage_count),
             plan.schedule, console::readable_count(launches),
             console::readable_percent(plan.bubble), console::readable_bytes(most),
             console::readable_bytes(plan.bytes)});
}

struct known_model {
  void (*add_line)(console::text_table&, char const* name);
  std::string (*explain)();
  std::string (*problem)();
};
template <class P>
constexpr known_model known{add_line<P>, explain<P>, explain_problem<P>};

std::map<std::string, known_model> const models = {
    {"gpt2-124m", known<Planned<Gpt2, Stages<4>, MicroBatches<16>, MicroBatchSize<4>, AdamW>>},
    {"megatron-8.3b", known<Planned<Megatron, Stages<8>, MicroBatches<64>, AdamW>>},
    {"gpt3-175b",
     known<Planned<Gpt3, Stages<96>, MicroBatches<192>, Interleaved<2>, RecomputeAll, AdamW>>},
    {"gpipe-83.9b", known<Large>},
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Plans well-known models without memory for them."};
  std::vector<std::string> names;
  std::vector<std::string> all;
  std::string problem_file;
  for (auto const& [name, model] : models) all.push_back(name);
  app.add_option("MODEL", names, "print everything about these: " + CLI::detail::join(all, ", "))
      ->check(CLI::IsMember(all));
  app.add_option("--problem", problem_file,
                 "write the scheduling problem of the model to this file, as JSON, instead");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!problem_file.empty()) {
      if (names.size() != 1) throw pp::error("--problem needs the name of one model");
      files::write_file(problem_file, models.at(names[0]).problem());
      return 0;
    }
    for (std::string const& name : names) std::cout << models.at(name).explain() << '\n';
    if (!names.empty()) return 0;
    console::text_table table({"model", "parameters", "stages", "schedule", "launches", "bubble",
                               "largest rank", "all ranks"},
                              {0, 3});
    for (auto const& [name, model] : models) model.add_line(table, name.c_str());
    std::cout << table.str();
    return 0;
  } catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
