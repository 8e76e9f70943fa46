// SPDX-License-Identifier: BSL-1.0
//
// Training steps of large GPTs on clusters of up to 1,024 GPUs and beyond, simulated, beside the
// figures of Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM, 2021: tables 1 and 2. No GPU is needed.
//
// Orders, waits and transfers between stages are the library's: a table of 1F1B or interleaved 1F1B
// is made, validated and simulated, with a time for each stage and the links' speed. The times are
// formulas, for one micro-batch and one of the T GPUs that share a stage by tensor parallelism:
//
// * products: 24 b s h^2 (1 + s / 6h) FLOPs of a layer in F, over T and a share of the peak; twice
//   that in B and W
// * memory: 13 bytes for each attention score and 22 + 16 / T for each activation of a layer in F,
//   twice that in B and W: what kernels of 2021 read and write between products
// * tensor parallelism: an all-reduce of the activations twice in F of a layer, and twice in B
// * recomputation: F once more before B, as in the paper
// * the head: in the last stage, which the paper's formula (P - 1) / M leaves out
// * replicas: a ring over the gradients in fp32 after the last backward
//
// The share is the one free number: its default makes the line of 1.7B, which has neither stages
// nor tensor parallelism, as published. The other defaults are an A100 of the paper's cluster.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/validate.hpp>

using namespace pp;

namespace {

constexpr double positions = 2048, vocabulary = 51200, gpus_of_node = 8;

/// A line of the paper: T-way tensor parallelism, P stages. TFLOP/s for each GPU.
struct line {
  char const* model;
  double width, layers, heads;
  int tensor, stages, gpus, batch;
  double published;
  int replicas() const { return gpus / (tensor * stages); }
  double parameters() const {
    return 12 * layers * width * width * (1 + 13 / (12 * width)) + (vocabulary + positions) * width;
  }
};
constexpr line lines[] = {
    // Table 2; without a figure where the paper has none.
    {"GPT-3 175B", 12288, 96, 96, 8, 16, 128, 1536, 0},
    {"GPT-3 175B", 12288, 96, 96, 8, 16, 256, 1536, 0},
    {"GPT-3 175B", 12288, 96, 96, 8, 12, 384, 1536, 153},
    {"GPT-3 175B", 12288, 96, 96, 8, 16, 512, 1536, 0},
    {"GPT-3 175B", 12288, 96, 96, 8, 12, 768, 1536, 149},
    {"GPT-3 175B", 12288, 96, 96, 8, 16, 1024, 1536, 0},
    {"GPT-3 175B", 12288, 96, 96, 8, 12, 1536, 1536, 141},
    // Table 1.
    {"1.7B", 2304, 24, 24, 1, 1, 32, 512, 137},
    {"39.1B", 8192, 48, 64, 8, 2, 512, 1536, 138},
    {"76.1B", 10240, 60, 80, 8, 4, 1024, 1792, 140},
    {"145.6B", 12288, 80, 96, 8, 8, 1536, 2304, 148},
    {"310.1B", 16384, 96, 128, 8, 16, 1920, 2160, 155},
    {"529.6B", 20480, 105, 128, 8, 35, 2520, 2520, 163},
    {"1008B", 25600, 128, 160, 8, 64, 3072, 3072, 163},
};

/// Of a GPU, in FLOP/s and bytes per second one way; seconds.
struct machine {
  double flops = 312e12, share = 0.761, memory = 1.6e12, node_link = 240e9, link = 25e9,
         hop = 10e-6;
  int samples = 1;  // of a micro-batch
  int chunks = 0;   // of a rank; 0: as few above 1 as divide its layers
};

/// Seconds that one GPU takes for a layer, or for the head, forward.
double seconds_of_layer(line const& l, machine const& m) {
  double const tokens = m.samples * positions, h = l.width, t = l.tensor;
  double const products = 24 * tokens * h * h * (1 + positions / (6 * h)) / t;
  double const traffic = 13 * tokens * positions * l.heads / t + (22 + 16 / t) * tokens * h;
  return products / (m.flops * m.share) + traffic / m.memory;
}
double seconds_of_head(line const& l, machine const& m) {
  return 2 * m.samples * positions * l.width * vocabulary / l.tensor / (m.flops * m.share);
}
/// A ring over n: 2 (n - 1) / n times the bytes.
double seconds_of_ring(double n, double bytes, double link) {
  return 2 * (n - 1) / n * bytes / link;
}

/// Micro-batches of a replica.
int m_of(line const& l, machine const& m) { return l.batch / l.replicas() / m.samples; }

/// Times in nanoseconds. The last stage has the head.
schedules::run_time_problem question(line const& l, machine const& m, int chunks) {
  schedules::run_time_problem p;
  p.ranks = l.stages;
  p.chunks = l.stages * chunks;
  p.micro_batches = m_of(l, m);
  p.hop = std::lround(m.hop * 1e9);
  p.bandwidth = std::max(1L, std::lround(m.link / 1e6));          // thousandths of a byte each ns
  double const activation = 2 * m.samples * positions * l.width;  // bytes
  double const layers = l.layers / p.chunks, layer = seconds_of_layer(l, m) * layers,
               all_reduces = 2 * layers * seconds_of_ring(l.tensor, activation, m.node_link);
  for (int c = 0; c < p.chunks; ++c) {
    double const head = c + 1 == p.chunks ? seconds_of_head(l, m) : 0,
                 forward = layer + all_reduces;
    schedules::chunk_cost cost;
    cost.forward = std::lround(1e9 * (forward + head));
    // Recomputation, and B and W, which 1F1B does not split.
    cost.backward_input = std::lround(1e9 * (forward + layer + head + all_reduces));
    cost.backward_weight = std::lround(1e9 * (layer + head));
    // The GPUs of a stage send a part each, and put it together by the node's links.
    cost.bytes = std::lround(1000 * activation / l.tensor);  // thousandths
    p.costs.push_back(cost);
  }
  return p;
}

struct outcome {
  double bubble = 0, step = 0, tflops = 0;  // seconds; for each GPU
};
outcome simulated(char const* family, line const& l, machine const& m, int chunks) {
  schedules::run_time_problem const problem = question(l, m, chunks);
  auto const table = schedules::make_dynamic_table(*schedules::find_family(family), problem);
  if (schedules::verdict const v = schedules::validate(problem, table); !v.ok())
    throw error(v.text());
  auto const when = schedules::simulate(problem, table);
  outcome o;
  o.bubble = when.bubble_by_makespan();
  double const gradients = 4 * l.parameters() / (l.tensor * l.stages);
  // The replicas of a node share its links.
  o.step = double(when.makespan) * 1e-9 +
           seconds_of_ring(l.replicas(), gradients, m.link * gpus_of_node / l.tensor);
  double const h = l.width, work = 96.0 * l.batch * positions * l.layers * h * h *
                                   (1 + positions / (6 * h) + vocabulary / (16 * l.layers * h));
  o.tflops = work / o.step / l.gpus * 1e-12;
  return o;
}
int chunks_of(line const& l, machine const& m) {
  int const layers = int(l.layers) / l.stages;
  if (l.stages == 1 || m.chunks > 0) return l.stages == 1 ? 1 : m.chunks;
  int v = 2;
  while (v < layers && layers % v != 0) ++v;
  return v;
}

// GPT-3 as the library plans it, in fp32 on 12 stages: to compare with the formulas.
struct Gpt3 : Model<Tokens<51200, 2048>, Named<"tokens", Embedding<12288>>, Positions,
                    Repeat<96, Seq<Residual<LayerNorm, Attention<96>>,
                                   Residual<LayerNorm, Linear<49152>, GELUTanh, Linear<12288>>>>,
                    LayerNorm, Tied<"tokens">, CrossEntropy> {};
using Planned3 = Planned<Gpt3, Stages<12>, MicroBatches<384>, RecomputeAll, AdamW>;

void compare_plan(line const& l) {
  auto const& plan = Planned3::plan();
  double flops = 0;
  for (stage_plan const& s : plan.stages) flops += double(s.forward_flops);
  double const h = l.width, formula = 24 * positions * l.layers * h * h *
                                      (1 + positions / (6 * h) + vocabulary / (12 * l.layers * h));
  std::printf(
      "\nGPT-3 as the library plans it, over these formulas: parameters %.4f, FLOPs forward "
      "%.4f, bytes over a link %.4f\n",
      double(plan.parameters) / l.parameters(), flops / formula,
      double(plan.links[0].values) / (4 * positions * h));
}

}  // namespace

int main(int count, char** arguments) {
  machine m;
  CLI::App app{"Simulated training steps of large GPTs beside Megatron's"};
  auto const option = [&](char const* name, auto& value, char const* what) {
    app.add_option(name, value, what)->capture_default_str();
  };
  option("--gpu-flops", m.flops, "peak FLOP/s of a GPU");
  option("--share", m.share, "share of it that products reach");
  option("--memory", m.memory, "bytes per second of a GPU's memory");
  option("--node-link", m.node_link, "bytes per second from a GPU to those of its node");
  option("--link", m.link, "bytes per second from a GPU to other nodes");
  option("--hop", m.hop, "seconds until a message arrives, besides");
  option("--micro-batch", m.samples, "samples of a micro-batch");
  app.add_option("--chunks", m.chunks, "chunks of a rank [the fewest above 1 that divide it]");
  CLI11_PARSE(app, count, arguments);
  try {
    std::printf(
        "simulated: products at %.1f %% of %.0f TFLOP/s, memory %.0f GB/s, links in a node %.0f "
        "GB/s, to other nodes %.1f GB/s after %.0f us\n",
        100 * m.share, m.flops * 1e-12, m.memory * 1e-9, m.node_link * 1e-9, m.link * 1e-9,
        m.hop * 1e6);
    console::text_table table({"model", "GPUs", "T", "P", "replicas", "M", "ideal", "1F1B", "V",
                               "bubble", "s per step", "TFLOP/s", "published", "ratio"},
                              {0});
    double least = 1, most = 1;
    for (line const& l : lines) {
      int const v = chunks_of(l, m);
      outcome const straight = simulated("1f1b", l, m, 1),
                    best = v == 1 ? straight : simulated("interleaved", l, m, v);
      double const ratio = best.tflops / l.published;
      if (l.published > 0) least = std::min(least, ratio), most = std::max(most, ratio);
      auto const real = [](double x, int digits) { return detail::readable_real(x, digits); };
      auto const published = [&](double x, int digits) {
        return l.published > 0 ? real(x, digits) : std::string("-");
      };
      table.add({l.model, std::to_string(l.gpus), std::to_string(l.tensor),
                 std::to_string(l.stages), std::to_string(l.replicas()), std::to_string(m_of(l, m)),
                 console::readable_percent((l.stages - 1.0) / (m_of(l, m) + l.stages - 1)),
                 console::readable_percent(straight.bubble), std::to_string(v),
                 console::readable_percent(best.bubble), real(best.step, 2), real(best.tflops, 0),
                 published(l.published, 0), published(ratio, 2)});
    }
    std::fputs(table.str().c_str(), stdout);
    compare_plan(lines[0]);
    std::printf("figure cluster_over_published_least %.3f\n", least);
    std::printf("figure cluster_over_published_most %.3f\n", most);
    return 0;
  } catch (std::exception const& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
}
