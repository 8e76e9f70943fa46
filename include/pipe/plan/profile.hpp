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
#include <map>
#include <string>
#include <string_view>
#include <utility>
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
  /// How sure they are: the range that the middle half of a launch's times spans, as a share of
  /// their median, over all launches. 0 if every launch always takes the same time.
  double spread = 0;
};

/// The number at a share of the way from the least to the greatest; at 1/2 the median, for an even
/// count the greater of the two middle numbers.
///
/// throws: error for an empty list
inline long quantile(std::vector<long> numbers, double share) {
  if (numbers.empty()) throw error("median: expected at least 1 number, got none");
  auto const at = numbers.begin() + std::ptrdiff_t(double(numbers.size()) * share);
  std::nth_element(numbers.begin(), at, numbers.end());
  return *at;
}
inline long median(std::vector<long> numbers) { return quantile(std::move(numbers), 0.5); }

/// The times of one launch of a rank's program, over micro-batches and repeats.
struct timed_launch {
  int layer = 0;
  bool is_forward = false;
  std::vector<bool> ran;          ///< by micro-batch: some run the programs that recompute
  std::vector<long> nanoseconds;  ///< in any order
};

/// The times of layers: for each launch the median of its times, so that one that was interrupted
/// spoils no sum; for each micro-batch the sum of those of a layer's launches; and of these sums
/// the median.
///
/// units: nanoseconds per micro-batch
/// law:   a launch's times above its median may be as long as they like: no layer's changes
inline layer_times times_of(std::vector<timed_launch> const& launches, int layers,
                            int micro_batches) {
  layer_times times;
  // By direction, layer and micro-batch.
  std::size_t const count = std::size_t(layers), batches = std::size_t(micro_batches);
  std::vector<long> sums[2] = {std::vector<long>(count * batches),
                               std::vector<long>(count * batches)};
  double all = 0, range = 0;
  for (timed_launch const& launch : launches) {
    long const middle = median(launch.nanoseconds);
    for (std::size_t mb = 0; mb < batches; ++mb)
      if (launch.ran[mb])
        sums[launch.is_forward][std::size_t(launch.layer) * batches + mb] += middle;
    double const weight = double(launch.nanoseconds.size());
    all += weight * double(middle);
    range +=
        weight * double(quantile(launch.nanoseconds, 0.75) - quantile(launch.nanoseconds, 0.25));
  }
  for (std::size_t l = 0; l < count; ++l)
    for (bool const is_forward : {true, false}) {
      auto const first = sums[is_forward].begin() + std::ptrdiff_t(l * batches);
      (is_forward ? times.forward : times.backward)
          .push_back(median({first, first + micro_batches}));
    }
  times.spread = all > 0 ? range / all : 0;
  return times;
}

/// throws: error for a spread above the most that is accepted
inline void require_spread(layer_times const& times, double most) {
  if (times.spread <= most) return;
  auto const percent = [](double share) { return std::to_string(long(100 * share + 0.5)) + " %"; };
  throw error("measure_layers: the middle half of a launch's times spans " + percent(times.spread) +
              " of their median, more than " + percent(most) +
              ": another program uses this machine; measure again without it, or accept a "
              "greater spread");
}

}  // namespace detail

/// Measures a trainer's layers: the launches of `repeats` training steps without updates, after a
/// warm-up step. The time of a layer is the sum of its launches' medians over all repeats and
/// micro-batches; that of a fused launch counts for its first layer, and recomputation does not
/// count. Most accurate with one stage: there are no cuts to prevent fusion, and no other rank
/// competes for cores.
///
/// law:    parameters, optimizer state and step count are unchanged
/// throws: error for repeats < 1, or a spread of the times above most_spread; what gradients(batch)
///         throws
template <class Trainer>
detail::layer_times measure_layers(Trainer& trainer, typename Trainer::batch const& batch,
                                   int repeats = 20, double most_spread = 0.5) {
  using compiled = typename Trainer::compiled;
  if (repeats < 1)
    throw error("measure_layers: expected at least 1 repeat, got " + std::to_string(repeats));
  constexpr int layers = Trainer::model::graph_type::size.units,
                micro_batches = compiled::micro_batches;
  // By rank, as ranks watch concurrently; and by launch.
  std::vector<std::map<detail::launch const*, detail::timed_launch>> seen_by(compiled::ranks);
  // Repeat -1 is the warm-up, which is not counted.
  for (int repeat = -1; repeat < repeats; ++repeat)
    trainer.watch(batch, [&](launch_seen const& seen) {
      if (repeat < 0 || seen.what->recomputed) return;
      detail::timed_launch& of = seen_by[std::size_t(seen.rank)][seen.what];
      of.layer = seen.what->layer;
      of.is_forward = seen.which == detail::program::forward;
      of.ran.resize(std::size_t(micro_batches));
      of.ran[std::size_t(seen.micro_batch % micro_batches)] = true;
      of.nanoseconds.push_back(seen.nanoseconds);
    });
  std::vector<detail::timed_launch> launches;
  for (auto const& of_rank : seen_by)
    for (auto const& [what, launch] : of_rank) launches.push_back(launch);

  detail::layer_times times = detail::times_of(launches, layers, micro_batches);
  for (int l = 0; l < layers; ++l) times.layers.push_back(Trainer::layer_name(l));
  auto const counted = [](long n, char const* of) {
    return std::to_string(n) + " " + of + (n == 1 ? "" : "s");
  };
  times.what = std::string(detail::type_name<typename Trainer::model>()) +
               ": launches' medians of " + counted(repeats, "training step") +
               " (their middle half spans " + std::to_string(long(100 * times.spread + 0.5)) +
               " %), micro-batches of " +
               counted(Trainer::compiled::plan().micro_batch_size, "sample") + ", " +
               Trainer::compiled::plan().precision + ", " +
               counted(Trainer::compiled::plan().stage_count, "stage") + ", " +
               "kernels: " + trainer.runs_on();
  detail::require_spread(times, most_spread);
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
  files::atomic_file file(path);
  file.write(text);
  file.commit();
}

}  // namespace pp
