// SPDX-License-Identifier: BSL-1.0
//
// Our half of a comparison with another program: trainers by name, driven line by line through
// stdin, so that the two can take turns in one run. While one works the other waits in a blocking
// read. The programs of this folder are such halves. Their argument: the folder with the
// mini-batches.
//
//   about            -> one line: compiler, instruction set, processor cores
//   save NAME FILE   -> "saved"; FILE gets every parameter: rows, columns (int32), numbers
//   (float32) run NAME STEPS   -> seconds of all steps together, loss and gradient norm of the last
//   one
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <pipe/pipe.hpp>

#include "../peer/machine.hpp"

namespace bench {

struct progress {
  double seconds = 0, loss = 0, norm = 0;
};

/// Seconds of all steps together; the rest is of the last one.
template <class Step>
progress timed(Step const& step, int steps) {
  progress p;
  auto const start = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) p = step();
  p.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return p;
}

/// A trainer of any type.
class contender {
 public:
  virtual ~contender() = default;
  virtual progress run(int steps) = 0;
  virtual void save(std::ofstream& file) = 0;
};

template <class T>
std::vector<T> read_all(std::string const& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot read '" + path + "': " + std::strerror(errno));
  std::vector<T> all(std::size_t(file.tellg()) / sizeof(T));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(all.data()), std::streamsize(all.size() * sizeof(T)));
  return all;
}

template <class Trainer>
void write_parameters(Trainer& trainer, std::ofstream& file) {
  for (auto const& p : trainer.parameters()) {
    int const extents[] = {p.rows, p.columns};
    file.write(reinterpret_cast<char const*>(extents), sizeof(extents));
    file.write(reinterpret_cast<char const*>(p.values.data()),
               std::streamsize(p.values.size_bytes()));
  }
}

/// Trains on the mini-batches in FOLDER/inputs and FOLDER/labels, one after the other, round and
/// round.
template <class Trainer>
class trained : public contender {
 public:
  trained(std::string const& folder, typename Trainer::settings const& settings)
      : inputs_(read_all<typename Trainer::input_type>(folder + "/inputs")),
        labels_(read_all<typename Trainer::label_type>(folder + "/labels")), trainer_(settings) {}

  progress run(int steps) override {
    std::size_t const in = std::size_t(Trainer::samples * Trainer::inputs_per_sample);
    std::size_t const out = std::size_t(Trainer::samples * Trainer::labels_per_sample);
    return timed(
        [&] {
          std::size_t const b = next_++ % (inputs_.size() / in);
          pp::step_result const r =
              trainer_.step({{inputs_.data() + b * in, in}, {labels_.data() + b * out, out}});
          return progress{0, r.loss, r.gradient_norm};
        },
        steps);
  }
  void save(std::ofstream& file) override { write_parameters(trainer_, file); }

 private:
  std::vector<typename Trainer::input_type> inputs_;
  std::vector<typename Trainer::label_type> labels_;
  Trainer trainer_;
  std::size_t next_ = 0;
};

/// Trainers by name, each made when it is first asked for.
using contenders = std::map<std::string, std::function<std::unique_ptr<contender>()>>;

/// What the pipelines of a program have in common: mini-batches, rate and clipping (0: none).
struct recipe {
  std::string folder;
  double rate = 1e-4, clip = 0;

  /// M under AdamW with further options.
  template <class M, class... Options>
  contenders::mapped_type with() const {
    using Trainer = pp::Pipeline<M, pp::AdamW, Options...>;
    typename Trainer::settings const settings{.seed = 1,
                                              .optimizer = {.learning_rate = rate},
                                              .clip_norm = clip,
                                              .runtime = {.pin = true}};
    return [folder = folder, settings] {
      return std::make_unique<trained<Trainer>>(folder, settings);
    };
  }
};

/// M with these options in one stage, with two threads, also in bf16, and in two stages.
template <class M, class... Options>
contenders usual_ways(recipe const& r) {
  return {{"stages_1", r.with<M, Options...>()},
          {"threads_2", r.with<M, Options..., pp::HostThreads<2>>()},
          {"threads_2_bf16", r.with<M, Options..., pp::HostThreads<2>, pp::BF16>()},
          {"stages_2", r.with<M, Options..., pp::Stages<2>>()}};
}

inline char const* compiler() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

/// Answers until the end of stdin; returns main's value.
inline int answer(contenders const& all) {
  std::map<std::string, std::unique_ptr<contender>> made;
  auto const named = [&](std::string const& name) -> contender& {
    auto& c = made[name];
    if (!c) c = all.at(name)();
    return *c;
  };
  std::string what, name, file;
  int steps = 0;
  while (std::cin >> what) {
    if (what == "about") {
      std::printf("%s, %s\n", compiler(), instruction_set());
    } else if (what == "save" && std::cin >> name >> file) {
      std::ofstream out(file, std::ios::binary);
      named(name).save(out);
      std::printf("saved\n");
    } else if (what == "run" && std::cin >> name >> steps) {
      progress const p = named(name).run(steps);
      std::printf("%.9f %.17g %.17g\n", p.seconds, p.loss, p.norm);
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace bench
