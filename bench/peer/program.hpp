// SPDX-License-Identifier: BSL-1.0
//
// A benchmark's own half of a comparison with another program: trainers by name, driven line by
// line through stdin, so that the two can take turns in one run. While one works the other waits in
// a blocking read.
//
//   about            -> one line: compiler, instruction set, processor cores
//   save NAME FILE   -> "saved"; FILE gets every parameter: rows, columns (int32), numbers
//   (float32) run NAME STEPS   -> seconds of all steps together, loss and gradient norm of the last
//   one, share
//                       of waiting
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

#include "machine.hpp"

namespace bench {

struct progress {
  double seconds = 0, loss = 0, gradient_norm = 0, bubble = 0;
};

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
    progress p;
    auto const start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) {
      std::size_t const b = next_++ % (inputs_.size() / in);
      pp::step_result const r =
          trainer_.step({{inputs_.data() + b * in, in}, {labels_.data() + b * out, out}});
      p = {0, r.loss, r.gradient_norm, r.bubble};
    }
    p.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return p;
  }
  void save(std::ofstream& file) override {
    for (auto const& p : trainer_.parameters()) {
      int const extents[] = {p.rows, p.columns};
      file.write(reinterpret_cast<char const*>(extents), sizeof(extents));
      file.write(reinterpret_cast<char const*>(p.values.data()),
                 std::streamsize(p.values.size_bytes()));
    }
  }

 private:
  std::vector<typename Trainer::input_type> inputs_;
  std::vector<typename Trainer::label_type> labels_;
  Trainer trainer_;
  std::size_t next_ = 0;
};

/// Trainers by name, each made when it is first asked for.
using contenders = std::map<std::string, std::function<std::unique_ptr<contender>()>>;

template <class Trainer>
std::function<std::unique_ptr<contender>()> entry(std::string const& folder,
                                                  typename Trainer::settings const& settings) {
  return [=] { return std::make_unique<trained<Trainer>>(folder, settings); };
}

inline char const* compiler() {
#if defined(__clang__)
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

inline void answer(contenders const& all) {
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
      std::printf("%.9f %.17g %.17g %.6f\n", p.seconds, p.loss, p.gradient_norm, p.bubble);
    }
    std::fflush(stdout);
  }
}

}  // namespace bench
