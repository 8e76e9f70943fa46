// SPDX-License-Identifier: BSL-1.0
//
// A decoder of GPT-2's size that reads prompts of 512 tokens. Instead of a loss and the norm of
// gradients there are the loss of the next token and the norm of its logits.
#include <cmath>

#include <pipe/infer/decoder.hpp>

#include "networks.hpp"
#include "program.hpp"

using namespace pp;

class reader : public bench::contender {
  using Trainer = Pipeline<bench::GPT<768, 12, 12, 512>>;

 public:
  explicit reader(std::string const& folder)
      : prompts_(bench::read_all<int>(folder + "/inputs")),
        next_(bench::read_all<int>(folder + "/labels")) {}
  bench::progress run(int steps) override {
    return bench::timed(
        [&] {
          std::size_t const length = Trainer::inputs_per_sample, last = ++count_ * length;
          decoder_.rewind(0);
          auto const logits = decoder_.read({prompts_.data() + last - length, length});
          count_ %= prompts_.size() / length;
          double sum = 0, square = 0;
          for (float const x : logits) sum += std::exp(double(x)), square += double(x) * double(x);
          return bench::progress{0, std::log(sum) - double(logits[std::size_t(next_[last - 1])]),
                                 std::sqrt(square)};
        },
        steps);
  }
  void save(std::ofstream& file) override { bench::write_parameters(trainer_, file); }

 private:
  std::vector<int> prompts_, next_;
  Trainer trainer_{{.seed = 1}};
  decoder<Trainer> decoder_{trainer_};
  std::size_t count_ = 0;
};

int main(int count, char** arguments) {
  if (count != 2) return 2;
  return bench::answer({{"one_thread", [=] { return std::make_unique<reader>(arguments[1]); }}});
}
