// SPDX-License-Identifier: BSL-1.0
//
// Scheduling problems as JSON, to be kept in files: those of a Pipeline or Planned, and any other.
// The example `schedules` reads them (--problem). Members of these files that are not known are
// passed over.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/io/json_reader.hpp>
#include <pipe/io/json_string.hpp>
#include <pipe/report/drawing.hpp>
#include <pipe/report/json.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/table.hpp>

namespace pp {

namespace detail {

/// A chunk's costs as an object in one line. Members that have no value of their own are left out.
inline std::string cost_json(chunk_cost const& c) {
  auto const member = [](char const* name, long value) {
    return std::string(",\"") + name + "\":" + std::to_string(value);
  };
  std::string text = member("forward", c.forward) + member("backward_input", c.backward_input) +
                     member("backward_weight", c.backward_weight);
  if (c.recompute >= 0) text += member("recompute", c.recompute);
  text += ",\"memory\":[" +
          json_numbers({c.memory.forward, c.memory.backward_input, c.memory.backward_weight,
                        c.memory.recompute}) +
          "]" + member("bytes", c.bytes) + member("hidden", c.hidden);
  if (c.hop >= 0) text += member("hop", c.hop);
  if (c.bandwidth >= 0) text += member("bandwidth", c.bandwidth);
  text[0] = '{';
  return text + "}";
}

/// A reader of a problem: objects whose members stand at most once, in any order.
class problem_reader {
 public:
  problem_reader(std::string_view text, std::string_view name) : json_(text, name), file_(name) {}

  /// throws: data_error for what is no problem, or one whose sums could exceed 2^60
  [[gnu::cold]] run_time_problem read() {
    long ranks = 0, chunks = 0, micro_batches = 0;
    number numbers[] = {{"ranks", ranks, true},
                        {"chunks", chunks, true},
                        {"micro_batches", micro_batches, true},
                        {"hop", read_.hop},
                        {"bandwidth", read_.bandwidth},
                        {"limit", read_.limit}};
    bool has_rooms = false, has_costs = false;
    object("'{' before ranks, chunks, micro_batches and costs", numbers,
           [&](std::string const& name) {
             if (once(has_rooms, name, "rooms"))
               json_.array("'[' before a limit for each rank",
                           [&] { read_.rooms.push_back(long(json_.whole_number())); });
             else if (once(has_costs, name, "costs"))
               json_.array("'[' before the costs of each chunk",
                           [&] { read_.costs.push_back(cost()); });
             else
               json_.skip();
           });
    json_.end();
    if (!has_costs) refuse({"costs is missing"});
    for (long const n : {ranks, chunks, micro_batches})
      if (n < 1 || n > most_actions)
        refuse({"expected from 1 to ", most_actions, " ranks, chunks and micro-batches, got ", n});
    if (chunks * micro_batches > most_actions)
      refuse({chunks, " chunks and ", micro_batches, " micro-batches exceed the limit of ",
              most_actions, " actions"});
    if (read_.costs.size() != std::size_t(chunks))
      refuse({"expected costs of ", chunks, " chunks, got ", read_.costs.size()});
    if (read_.rooms.size() > std::size_t(ranks))
      refuse({"expected rooms of at most ", ranks, " ranks, got ", read_.rooms.size()});
    read_.ranks = int(ranks);
    read_.chunks = int(chunks);
    read_.micro_batches = int(micro_batches);
    check_sums();
    return std::move(read_);
  }

 private:
  /// A member that is a whole number of at least 0.
  struct number {
    char const* name;
    long& value;
    bool is_required = false, is_there = false;
  };

  [[noreturn, gnu::cold]] void refuse(text_parts what) const {
    throw_joined<data_error>({json_.context, ": "}, what);
  }
  /// Whether `name` is `expected`. throws: data_error the second time
  [[gnu::cold]] bool once(bool& is_there, std::string const& name, char const* expected) const {
    if (name != expected) return false;
    if (std::exchange(is_there, true)) refuse({name, " occurs twice"});
    return true;
  }
  /// Reads an object with these numbers. other(name) reads each other member.
  template <std::size_t N>
  void object(char const* what, number (&numbers)[N],
              function_ref<void(std::string const&)> other) {
    json_.object(what, [&](std::string const& name) {
      for (number& n : numbers)
        if (once(n.is_there, name, n.name)) {
          n.value = long(json_.whole_number());
          return;
        }
      other(name);
    });
    for (number const& n : numbers)
      if (n.is_required && !n.is_there) refuse({n.name, " is missing"});
  }

  [[gnu::cold]] chunk_cost cost() {
    chunk_cost c;
    number numbers[] = {{"forward", c.forward, true},
                        {"backward_input", c.backward_input, true},
                        {"backward_weight", c.backward_weight, true},
                        {"recompute", c.recompute},
                        {"bytes", c.bytes},
                        {"hidden", c.hidden},
                        {"hop", c.hop},
                        {"bandwidth", c.bandwidth}};
    bool has_memory = false;
    json_.context = joined_text({file_, ": chunk ", read_.costs.size()});
    object("'{' before the costs of a chunk", numbers, [&](std::string const& name) {
      once(has_memory, name, "memory") ? read_memory(c.memory) : json_.skip();
    });
    if (!has_memory) refuse({"memory is missing"});
    json_.context = file_;
    return c;
  }
  /// Four numbers: what F, B, W and R add.
  [[gnu::cold]] void read_memory(memory_change& m) {
    long* const change[] = {&m.forward, &m.backward_input, &m.backward_weight, &m.recompute};
    std::size_t count = 0;
    json_.array("'[' before what F, B, W and R add to the memory", [&] {
      if (count == std::size(change)) json_.refuse({"']' after four numbers"});
      *change[count++] = json_.integer();
    });
    if (count < std::size(change))
      refuse({"memory: expected what F, B, W and R add, four numbers, got ", count});
  }

  /// Checks that no sum of times or of memory over all actions overflows, nor do several such sums.
  [[gnu::cold]] void check_sums() const {
    double time = 0, memory = 0, most = double(read_.limit);
    auto const raise = [&](long n) { most = double(n) > most ? double(n) : most; };
    raise(read_.bandwidth);
    for (long const room : read_.rooms) raise(room);
    for (chunk_cost const& c : read_.costs) {
      raise(c.bandwidth);
      for (long const t : {c.forward, c.backward_input, c.backward_weight, c.recompute, c.hidden})
        time += double(t);
      for (long const t : {c.hop < 0 ? read_.hop : c.hop, c.bytes}) time += 2 * double(t);
      for (long const change : {c.memory.forward, c.memory.backward_input, c.memory.backward_weight,
                                c.memory.recompute})
        memory += std::abs(double(change));
    }
    double const m = read_.micro_batches;
    for (double const sum : {time * m, memory * (m + read_.ranks), most})
      if (!(sum < double(1L << 60)))
        refuse({"times, memory or limits are too large to be added up: expected sums below 2^60"});
  }

  json_reader json_;
  std::string file_;
  run_time_problem read_;
};

}  // namespace detail

namespace schedules {

/// A problem as a JSON object: an entry of `costs` for each chunk, and of `rooms` for each rank
/// with a limit of its own; `memory` is what F, B, W and R add. `words`: its name, and its units of
/// time and memory, for those who read the file.
///
/// law: read_problem(problem_json(p), name) has the ranks, chunks, micro-batches, costs and limits
///      of p
template <class Costs, class Rooms>
std::string problem_json(problem<Costs, Rooms> const& p, detail::drawing_words const& words = {}) {
  return detail::json_object(
             {{"problem", detail::json_string(words.title)},
              {"unit_of_time", detail::json_string(words.time_unit)},
              {"unit_of_memory", detail::json_string(words.memory_unit)},
              {"ranks", std::to_string(p.ranks)},
              {"chunks", std::to_string(p.chunks)},
              {"micro_batches", std::to_string(p.micro_batches)},
              {"hop", std::to_string(p.hop)},
              {"bandwidth", std::to_string(p.bandwidth)},
              {"limit", std::to_string(p.limit)},
              {"rooms", detail::json_array(std::size_t(p.rooms.size()),
                                           [&](std::size_t rank) {
                                             using size_type = decltype(p.rooms.size());
                                             return std::to_string(p.rooms[size_type(rank)]);
                                           })},
              {"costs", detail::json_array(std::size_t(p.chunks),
                                           [&](std::size_t c) {
                                             return "\n" + detail::cost_json(p.cost(int(c)));
                                           })}}) +
         "\n";
}

/// The problem that a text of problem_json says. `name`: of the file, for messages.
///
/// throws: pp::data_error for any other text, and for a problem whose times or memory cannot be
///         added up in 64 bits
inline run_time_problem read_problem(std::string_view text, std::string_view name) {
  return detail::problem_reader(text, name).read();
}

}  // namespace schedules

/// The scheduling problem of a Pipeline or Planned as JSON: times of its stages in FLOPs, or in
/// nanoseconds with ByProfile, memory in bytes, and the bytes that cross each boundary.
///
/// A type without a plan is refused at compile time.
///
/// throws: pp::error as Trainer::plan() does
template <class Trainer>
std::string explain_problem() {
  if constexpr (requires { Trainer::compiled::times(); }) {
    using compiled = typename Trainer::compiled;
    constexpr bool profiled = requires { typename compiled::partition::profile; };
    auto problem = compiled::times();
    for (int s = 0; s + 1 < problem.chunks; ++s) {
      long const values = compiled::memory().chunks[s].rings.boundary.stride,
                 gradients = compiled::memory().chunks[s + 1].rings.gradient.stride;
      problem.costs[std::size_t(s)].bytes = values > gradients ? values : gradients;
    }
    return schedules::problem_json(
        problem, {std::string(detail::type_name<typename Trainer::model>()) + ", " +
                      compiled::schedule::name,
                  profiled ? "ns" : "FLOP", "B"});
  } else {
    static_assert(
        detail::accepted<decltype(detail::diagnosis_of<wrong::only_a_pipeline_can_be_explained,
                                                       Trainer>())>::value);
    return {};
  }
}

}  // namespace pp
