// SPDX-License-Identifier: BSL-1.0
//
// Measured times of a model's layers, and a header that contains them: the next build partitions
// the model by it (ByProfile). Estimates are functions of FLOPs and bytes; measurements are of this
// machine.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/io/atomic_file.hpp>

namespace pp {

namespace detail {

/// Times of a model's top-level layers.
///
/// units: nanoseconds per micro-batch
/// law:   forward, backward and layers have equal sizes
struct layer_times {
  std::vector<long> forward, backward;
  std::vector<std::string> layers;  ///< names
  std::string what;                 ///< description of the measurement, a comment in the header
};

/// Median; for an even count the greater of the two middle numbers.
///
/// throws: error for an empty list
inline long median(std::vector<long> numbers) {
  if (numbers.empty()) throw error("median: expected at least 1 number, got none");
  auto const middle = numbers.begin() + std::ptrdiff_t(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace detail

/// Measures a trainer's layers: the launches of `repeats` training steps without updates, after a
/// warm-up step, with the median over all their micro-batches. The time of a launch counts for its
/// layer; of a fused one, for the first layer in it; recomputation does not count. Most accurate
/// with one stage: there are no cuts to prevent fusion, and no other rank competes for cores.
///
/// law:    parameters, optimizer state and step count are unchanged
/// throws: error for repeats < 1; what gradients(batch) throws
template <class Trainer>
detail::layer_times measure_layers(Trainer& trainer, typename Trainer::batch const& batch,
                                   int repeats = 20) {
  using compiled = typename Trainer::compiled;
  if (repeats < 1)
    throw error("measure_layers: expected at least 1 repeat, got " + std::to_string(repeats));
  constexpr std::size_t layers = Trainer::model::graph_type::size.units,
                        micro_batches = compiled::micro_batches;
  // By layer: times of every repeat and micro-batch.
  std::vector<std::vector<long>> forward(layers), backward(layers);
  // Repeat -1 is the warm-up, which is not counted.
  for (int repeat = -1; repeat < repeats; ++repeat) {
    std::vector<long> sums[2] = {std::vector<long>(layers * micro_batches),
                                 std::vector<long>(layers * micro_batches)};
    trainer.watch(batch, [&](launch_seen const& seen) {  // a layer is on one rank only
      std::size_t const place =
          std::size_t(seen.micro_batch) * layers + std::size_t(seen.what->layer);
      if (!seen.what->recomputed)
        sums[seen.which != detail::program::forward][place] += seen.nanoseconds;
    });
    if (repeat < 0) continue;
    for (std::size_t i = 0; i < layers * micro_batches; ++i) {
      forward[i % layers].push_back(sums[0][i]);
      backward[i % layers].push_back(sums[1][i]);
    }
  }

  detail::layer_times times;
  for (std::size_t l = 0; l < layers; ++l) {
    times.forward.push_back(detail::median(forward[l]));
    times.backward.push_back(detail::median(backward[l]));
    times.layers.push_back(Trainer::layer_name(int(l)));
  }
  auto const counted = [](long n, char const* of) {
    return std::to_string(n) + " " + of + (n == 1 ? "" : "s");
  };
  times.what = std::string(detail::type_name<typename Trainer::model>()) + ": median of " +
               counted(repeats, "training step") + ", micro-batches of " +
               counted(Trainer::compiled::plan().micro_batch_size, "sample") + ", " +
               Trainer::compiled::plan().precision + ", " +
               counted(Trainer::compiled::plan().stage_count, "stage") + ", " +
               "kernels: " + trainer.runs_on();
  return times;
}

namespace detail {

/// Whether a name is a C++ identifier: letters, digits and underscores, not starting with a digit.
inline bool is_identifier(std::string_view name) {
  auto const digit = [](char c) { return c >= '0' && c <= '9'; };
  auto const letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && !digit(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return digit(c) || letter(c); });
}

/// Text of a profile's header: a struct with that name, for ByProfile, without includes.
///
/// throws: error for a name that is no identifier, or lists of different sizes
inline std::string profile_header(std::string const& name, layer_times const& times) {
  if (!is_identifier(name))
    throw error("write_profile: '" + name + "': expected a C++ identifier, the name of a struct");
  if (times.backward.size() != times.forward.size() || times.layers.size() != times.forward.size())
    throw error("write_profile: " + std::to_string(times.forward.size()) + " forward times, " +
                std::to_string(times.backward.size()) + " backward times and " +
                std::to_string(times.layers.size()) + " names of layers: expected as many of each");
  auto const array = [&](char const* of, std::vector<long> const& nanoseconds) {
    std::string text = std::string("  static constexpr long ") + of + "_nanoseconds[] = {\n";
    for (std::size_t l = 0; l < nanoseconds.size(); ++l) {
      // Layer names are aligned as comments at column 20.
      std::string const number = "      " + std::to_string(nanoseconds[l]) + ",";
      text += number + std::string(number.size() < 20 ? 20 - number.size() : 1, ' ') + "// " +
              std::to_string(l) + " " + times.layers[l] + "\n";
    }
    return text + "  };\n";
  };
  return "// Nanoseconds per micro-batch that each layer takes, for pp::ByProfile<" + name +
         ">; written by pp::write_profile.\n// " + times.what + "\n#pragma once\n\nstruct " + name +
         " {\n  static constexpr int layers = " + std::to_string(times.forward.size()) + ";\n" +
         array("forward", times.forward) + array("backward", times.backward) + "};\n";
}

}  // namespace detail

/// Writes measured times as a header for ByProfile, atomically.
///
/// throws: file_error, and the previous file is unchanged; error as profile_header does
inline void write_profile(std::string const& path, std::string const& name,
                          detail::layer_times const& times) {
  std::string const text = detail::profile_header(name, times);
  atomic_file file(path);
  file.write(text);
  file.commit();
}

}  // namespace pp
