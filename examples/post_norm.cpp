// SPDX-License-Identifier: BSL-1.0
//
// Deep initialisation, seen: 32 layers that normalise after each sum, as the first Transformers
// did. The task is a substitution of 32 letters, which one layer would learn at once. Where what is
// added begins smaller by the root of the number of additions, they learn; else they learn nothing.
#include <cmath>
#include <cstdio>
#include <vector>

#include <pipe/pipe.hpp>
using namespace pp;

// [post_norm]
constexpr int layers = 32, width = 32, letters = 32, positions = 24;

template <class Added>  // the initial values of what is added
using Block = Seq<Residual<Attention<2, OutputInit<Added>>>, LayerNorm,
                  Residual<Linear<2 * width>, GELUTanh, Linear<width, Init<Added>>>, LayerNorm>;

template <class Added>
struct Deep : Model<Tokens<letters, positions>, Embedding<width>, Positions,
                    Repeat<layers, Block<Added>>, Linear<letters>, CrossEntropy> {};

using Plain = Deep<Normal<18, 100>>;
using Scaled = Deep<ScaledNormal<18, 100, 2 * layers>>;  // over the root of 64 additions
// [/post_norm]

/// Trains for some steps, prints the mean loss of each fifth, and returns the last.
template <class M>
double train(char const* name) {
  using Trainer = Pipeline<M, MicroBatches<1>, MicroBatchSize<16>, AdamW>;
  constexpr int steps = 90, part = steps / 5;
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 2e-3}});
  std::vector<int> text(Trainer::samples * positions), labels(text.size());
  unsigned state = 1;
  double sum = 0, last = 0;
  std::printf("%-22s", name);
  for (int step = 1; step <= steps; ++step) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      state = state * 1664525u + 1013904223u;
      text[i] = int(state >> 27);
      labels[i] = (text[i] * 5 + 3) % letters;
    }
    sum += trainer.step({text, labels}).loss;
    if (step % part != 0) continue;
    last = sum / part, sum = 0;
    std::printf("  %.2f", last);
  }
  std::printf("\n");
  return last;
}

int main() {
  std::printf("mean loss of 18 steps each; chance is %.2f\n", std::log(double(letters)));
  double const plain = train<Plain>("plain initialisation"),
               scaled = train<Scaled>("deep initialisation");
  return scaled < 1 && plain > 3 ? 0 : 1;
}
