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
#include <pipe/io/atomic_file.hpp>
#include <pipe/passes/launch_parts.hpp>
#include <pipe/passes/layer_profile.hpp>
#include <pipe/passes/storage.hpp>
#include <pipe/runtime/job.hpp>

namespace pp {

namespace detail {

/// Times of a model's top-level layers.
///
/// law: `each` and `layers` have equal sizes
struct layer_times {
  std::vector<layer_time> each;     ///< nanoseconds per micro-batch
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

/// The times of one launch of a rank's program, over micro-batches and repeats; with Lengths, whose
/// micro-batches have unequal rows, over the repeats of one micro-batch.
struct timed_launch {
  std::vector<launch_part> parts;
  std::vector<bool> ran;          ///< by micro-batch: some run the programs that recompute
  std::vector<long> nanoseconds;  ///< in any order
};

/// Whether a launch does more than recompute, which is not measured.
inline bool is_measured(std::vector<launch_part> const& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](launch_part const& p) { return p.list != op_list::recompute; });
}

/// The times of layers: for each launch the median of its times, so that one that was interrupted
/// spoils no sum, shared between its layers by their work; for each micro-batch the sums of these
/// shares; and of the sums the medians. F, B and W are apart.
///
/// needs: launches that are measured
/// law:   a launch's times above its median may be as long as they like: no layer's changes; the
///        times of all layers add up to the medians of all launches, if every micro-batch runs the
///        same launches and none recomputes
inline layer_times times_of(std::vector<timed_launch> const& launches, int layers,
                            int micro_batches) {
  std::size_t const count = std::size_t(layers), batches = std::size_t(micro_batches);
  per_op_list<std::vector<long>> sums;  // by layer and micro-batch
  for (op_list l : every_op_list) sums[l].resize(count * batches);
  double all = 0, range = 0;
  for (timed_launch const& launch : launches) {
    long const middle = median(launch.nanoseconds);
    share_time(middle, launch.parts, [&](launch_part const& of, long time) {
      for (std::size_t mb = 0; mb < batches; ++mb)
        if (launch.ran[mb]) sums[of.list][std::size_t(of.layer) * batches + mb] += time;
    });
    double const weight = double(launch.nanoseconds.size());
    all += weight * double(middle);
    range +=
        weight * double(quantile(launch.nanoseconds, 0.75) - quantile(launch.nanoseconds, 0.25));
  }
  layer_times times;
  for (std::size_t l = 0; l < count; ++l) {
    auto const of_list = [&](op_list which) {
      auto const first = sums[which].begin() + std::ptrdiff_t(l * batches);
      return median({first, first + micro_batches});
    };
    times.each.push_back({of_list(op_list::forward), of_list(op_list::input_gradients),
                          of_list(op_list::weight_gradients)});
  }
  times.spread = all > 0 ? range / all : 0;
  return times;
}

/// The parts of launch number `launch` of a program of chunk `chunk`, for a micro-batch that keeps
/// all values or drops some. Work: a pipeline_schedule
template <class Work, int... S>
std::vector<launch_part> parts_of_launch(int chunk, bool drops, program p, int launch,
                                         std::integer_sequence<int, S...>) {
  std::vector<launch_part> found;
  auto const look = [&]<class Programs>(Programs const*) {
    int const loss = p == program::backward ? Programs::recomputed.loss_chain : -1;
    found = list_launch_parts(Work::passes::kernels, p, Programs::order_of(p),
                              Programs::chains_of(p), loss)
                .at(std::size_t(launch));
  };
  auto const look_in = [&]<int Stage>(fixed<Stage>) {
    if constexpr (Work::some_keep)
      if (!drops) look(static_cast<typename Work::template programs<Stage, false>*>(nullptr));
    if constexpr (Work::some_drop)
      if (drops) look(static_cast<typename Work::template programs<Stage, true>*>(nullptr));
  };
  ((chunk == S ? look_in(fixed<S>{}) : void()), ...);
  return found;
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
/// warm-up step. The times of a layer, of F, B and W, are the sums of its launches' medians over
/// all repeats and micro-batches; a launch that is for several layers is shared between them by
/// their work in it, and recomputation does not count. Most accurate with one stage: there are no
/// cuts to prevent fusion, and no other rank competes for cores.
///
/// law:    parameters, optimizer state and step count are unchanged
/// throws: error for repeats < 1, or a spread of the times above most_spread; what gradients(batch)
///         throws
template <class Trainer>
detail::layer_times measure_layers(Trainer& trainer, typename Trainer::batch const& batch,
                                   int repeats = 20, double most_spread = 0.5) {
  using compiled = typename Trainer::compiled;
  using work = typename compiled::work;
  if (repeats < 1)
    throw error("measure_layers: expected at least 1 repeat, got " + std::to_string(repeats));
  constexpr int layers = Trainer::model::graph_type::size.units,
                micro_batches = compiled::micro_batches;
  // By rank, as ranks watch concurrently; and by launch.
  using key = std::pair<detail::launch const*, int>;
  std::vector<std::map<key, detail::timed_launch>> seen_by(compiled::ranks);
  // Repeat -1 is the warm-up, whose times are not counted.
  for (int repeat = -1; repeat < repeats; ++repeat)
    trainer.watch(batch, [&](launch_seen const& seen) {
      int const mb = seen.micro_batch % micro_batches;
      int const apart = compiled::lengths::block > 0 ? seen.micro_batch : 0;
      auto const [at, is_new] = seen_by[std::size_t(seen.rank)].try_emplace(key{seen.what, apart});
      detail::timed_launch& of = at->second;
      if (is_new) {
        of.parts = detail::parts_of_launch<work>(
            seen.chunk, mb < work::first_kept_of(seen.chunk), seen.which, seen.launch,
            std::make_integer_sequence<int, compiled::stages>{});
        of.ran.resize(std::size_t(micro_batches));
      }
      of.ran[std::size_t(mb)] = true;
      if (repeat >= 0) of.nanoseconds.push_back(seen.nanoseconds);
    });
  std::vector<detail::timed_launch> launches;
  for (auto const& of_rank : seen_by)
    for (auto const& [what, launch] : of_rank)
      if (detail::is_measured(launch.parts)) launches.push_back(launch);

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
  if (times.layers.size() != times.each.size())
    throw error("write_profile: times of " + std::to_string(times.each.size()) + " layers and " +
                std::to_string(times.layers.size()) + " names: expected as many of each");
  auto const array = [&](char const* of, long layer_time::* time) {
    std::string text = std::string("  static constexpr long ") + of + "_nanoseconds[] = {\n";
    for (std::size_t l = 0; l < times.each.size(); ++l) {
      // Layer names are aligned as comments at column 20.
      std::string const number = "      " + std::to_string(times.each[l].*time) + ",";
      text += number + std::string(number.size() < 20 ? 20 - number.size() : 1, ' ') + "// " +
              std::to_string(l) + " " + times.layers[l] + "\n";
    }
    return text + "  };\n";
  };
  return "// Nanoseconds per micro-batch that each layer takes, for pp::ByProfile<" + name +
         ">; written by pp::write_profile.\n// " + times.what + "\n#pragma once\n\nstruct " + name +
         " {\n  static constexpr int layers = " + std::to_string(times.each.size()) + ";\n" +
         array("forward", &layer_time::forward) +
         array("backward_input", &layer_time::backward_input) +
         array("backward_weight", &layer_time::backward_weight) + "};\n";
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
