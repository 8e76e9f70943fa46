// SPDX-License-Identifier: BSL-1.0
//
// GPT-2 124M in bf16 as bench/gpu/gpt2.cu trains it, for bench/device_code.py: prints the plan of
// its matrix products, and trains a few steps on the executor of tests/ptx, which runs some blocks
// of each launch.
#include <cstring>
#include <utility>

#include "../gpu/gpt2.cuh"

namespace {

/// Bytes that cuBLASLt reads and writes for group G.
template <class Source, int G>
constexpr long bytes_of_call() {
  constexpr pp::cuda::blas_product p = pp::cuda::describe_blas_product<Source, G>();
  constexpr auto bytes = pp::cuda::operand_bytes<Source, G>();
  long all = p.accumulates ? bytes[p.d] : 0;
  for (int const index : {p.a, p.b, p.c, p.d, p.bias, p.aux})
    if (index >= 0) all += bytes[index];
  return all;
}

/// `product GROUP LAUNCHES ROWS COLUMNS INNER library|own CLOCKS BYTES`: launches of a micro-batch;
/// clocks that the plan expects of cuBLASLt, and bytes that it moves.
template <class Source, int G>
void print_product(int launches) {
  if constexpr (pp::detail::is_contraction(pp::cuda::group_of<Source, G>::value.anchor)) {
    using product = pp::cuda::contraction<Source, G>;
    bool const library =
        pp::cuda::is_for_cublaslt(product::shape, product::format, product::makes_weight);
    std::printf("product %d %d %td %td %td %s %td %ld\n", G, launches, product::shape.rows,
                product::shape.columns, product::shape.inner, library ? "library" : "own",
                pp::cuda::blas_clocks(product::shape, product::format, true),
                bytes_of_call<Source, G>());
  }
}

/// Products: the option that says who multiplies.
template <class Products>
void train(int steps) {
  using Trainer = pp::Pipeline<bench::Gpt2, pp::MicroBatches<2>, pp::MicroBatchSize<8>, pp::AdamW,
                               pp::BF16, Products, pp::Cuda>;
  using compiled = typename Trainer::compiled;
  // The launches of chains have numbers above those of the groups.
  std::vector<int> launches(std::size_t(compiled::groups + compiled::chain_kernels().count));
  for (pp::detail::program_view const& p : compiled::description().chunk[0].keeping.programs)
    for (int i = 0; i < p.count; ++i) ++launches[std::size_t(p.launches[i].group)];
  [&]<int... G>(std::integer_sequence<int, G...>) {
    (print_product<pp::cuda::source_of<compiled>, G>(launches[G]), ...);
  }(std::make_integer_sequence<int, compiled::groups>{});

  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 3e-4}, .clip_norm = 1});
  std::vector<int> tokens(std::size_t(Trainer::samples * Trainer::inputs_per_sample)),
      next(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = int(pp::math::random_block(1, 1, i).word[0] % 50257);
  for (std::size_t i = 0; i < tokens.size(); ++i) next[i] = tokens[(i + 1) % tokens.size()];
  for (int step = 0; step < steps; ++step) trainer.step({tokens, next});
  std::printf("tokens %zu\nmicro_batches %d\n", tokens.size(),
              compiled::description().micro_batches);
}

}  // namespace

/// gpt2 library|own STEPS
int main(int argc, char** argv) {
  return bench::run("gpt2", [&] {
    if (argc != 3) throw pp::error("gpt2 library|own STEPS");
    std::strcmp(argv[1], "own") == 0 ? train<pp::OwnProducts>(std::atoi(argv[2]))
                                     : train<pp::PlannedProducts>(std::atoi(argv[2]));
    return 0;
  });
}
