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
#include <vector>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/data/compositions.hpp>
#include <pipe/io/json_reader.hpp>
#include <pipe/io/json_string.hpp>
#include <pipe/plan/compiled/expected_epochs.hpp>
#include <pipe/report/drawing.hpp>
#include <pipe/report/json.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/table.hpp>

namespace pp {

namespace detail {

/// The part of a problem about samples of several lengths: the room of a micro-batch, and by chunk
/// the part of F, B, W and R that grows with the square of a sample's length.
struct length_costs {
  composition_room room;
  std::vector<chunk_cost> squares;
};

/// A chunk's costs as an object in one line. Members that have no value of their own are left out.
/// squares: as of length_costs, or null
inline std::string cost_json(chunk_cost const& c, chunk_cost const* squares = nullptr) {
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
  if (squares != nullptr)
    text += ",\"squares\":[" +
            json_numbers({squares->forward, squares->backward_input, squares->backward_weight,
                          squares->recompute}) +
            "]";
  text[0] = '{';
  return text + "}";
}

/// The part of the times of P's stages that grows with the square of a sample's length.
template <class P, class Problem>
std::vector<chunk_cost> squares_of(Problem const& times) {
  auto const of = step_on_cores<P>().by_length();
  auto const part = [](long time, long all, long square) {
    return all > 0 ? long(double(time) * double(square) / double(all)) : 0;
  };
  std::vector<chunk_cost> squares;
  for (std::size_t s = 0; s < std::size_t(P::stages); ++s) {
    chunk_cost const &time = times.costs[s], &all = of.all.costs[s], &square = of.squares.costs[s];
    chunk_cost& c = squares.emplace_back(
        chunk_cost{part(time.forward, all.forward, square.forward),
                   part(time.backward_input, all.backward_input, square.backward_input),
                   part(time.backward_weight, all.backward_weight, square.backward_weight)});
    c.recompute = time.recompute > 0 ? part(time.recompute, all.recompute, square.recompute) : 0;
  }
  return squares;
}

/// A reader of a problem: objects whose members stand at most once, in any order.
///
/// needs: the characters of `text` outlive the reader
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
    bool has_rooms = false, has_costs = false, has_lengths = false;
    object("'{' before ranks, chunks, micro_batches and costs", numbers,
           [&](std::string const& name) {
             if (once(has_rooms, name, "rooms"))
               json_.array("'[' before a limit for each rank",
                           [&] { read_.rooms.push_back(long(json_.whole_number())); });
             else if (once(has_costs, name, "costs"))
               json_.array("'[' before the costs of each chunk",
                           [&] { read_.costs.push_back(cost()); });
             else if (once(has_lengths, name, "lengths"))
               read_room();
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
    if (has_lengths) lengths_.room.micro_batches = int(micro_batches);
    has_lengths_ = has_lengths;
    return std::move(read_);
  }
  /// What read() has read of samples of several lengths; null if there was nothing.
  length_costs const* lengths() const { return has_lengths_ ? &lengths_ : nullptr; }

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
    bool has_memory = false, has_squares = false;
    chunk_cost squares{0, 0, 0};
    squares.recompute = 0;
    json_.context = joined_text({file_, ": chunk ", read_.costs.size()});
    object("'{' before the costs of a chunk", numbers, [&](std::string const& name) {
      if (once(has_memory, name, "memory"))
        read_memory(c.memory);
      else if (once(has_squares, name, "squares"))
        read_squares(squares);
      else
        json_.skip();
    });
    if (!has_memory) refuse({"memory is missing"});
    long const again = c.recompute < 0 ? c.forward : c.recompute;
    if (squares.forward > c.forward || squares.backward_input > c.backward_input ||
        squares.backward_weight > c.backward_weight || squares.recompute > again)
      refuse({"squares: expected parts of the times of F, B, W and R"});
    lengths_.squares.push_back(squares);
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

  /// Four numbers: the parts of F, B, W and R.
  [[gnu::cold]] void read_squares(chunk_cost& c) {
    long* const part[] = {&c.forward, &c.backward_input, &c.backward_weight, &c.recompute};
    std::size_t count = 0;
    json_.array("'[' before parts of F, B, W and R", [&] {
      if (count == std::size(part)) json_.refuse({"']' after four numbers"});
      *part[count++] = long(json_.whole_number());
    });
    if (count < std::size(part))
      refuse({"squares: expected parts of F, B, W and R, four numbers, got ", count});
  }
  /// The room of a micro-batch.
  [[gnu::cold]] void read_room() {
    long context = 0, samples = 0, block = 0, most = 0;
    number numbers[] = {{"context", context, true},
                        {"samples", samples, true},
                        {"block", block, true},
                        {"most", most, true}};
    object("'{' before context, samples, block and most", numbers,
           [&](std::string const&) { json_.skip(); });
    constexpr long largest = 1L << 30;
    for (long const n : {context, samples, block, most})
      if (n < 1 || n > largest)
        refuse({"lengths: expected numbers from 1 to ", largest, ", got ", n});
    if (context * samples > largest)
      refuse({"lengths: ", samples, " samples of ", context, " rows exceed ", largest, " rows"});
    if (context % block != 0 || most < samples)
      refuse(
          {"lengths: expected a block that divides the context, and at most as many samples as "
           "`most`"});
    lengths_.room = {int(context), int(samples), 1, 1,
                     row_room{int(context * samples), int(most), int(block)}};
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
  length_costs lengths_{};
  bool has_lengths_ = false;
};

}  // namespace detail

namespace schedules {

/// A problem as a JSON object: an entry of `costs` for each chunk, and of `rooms` for each rank
/// with a limit of its own; `memory` is what F, B, W and R add. `words`: its name, and its units of
/// time and memory, for those who read the file. `lengths`: of samples of several lengths, or null.
///
/// law: read_problem(problem_json(p), name) has the ranks, chunks, micro-batches, costs and limits
///      of p
template <class Costs, class Rooms>
std::string problem_json(problem<Costs, Rooms> const& p, detail::drawing_words const& words = {},
                         detail::length_costs const* lengths = nullptr) {
  std::string text = detail::json_object(
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
       {"costs", detail::json_array(std::size_t(p.chunks), [&](std::size_t c) {
          return "\n" + detail::cost_json(p.cost(int(c)),
                                          lengths == nullptr ? nullptr : &lengths->squares[c]);
        })}});
  if (lengths != nullptr) {
    detail::composition_room const& of = lengths->room;
    text.back() = ',';  // in place of the brace
    text += "\n\"lengths\":" +
            detail::json_object({{"context", std::to_string(of.context)},
                                 {"samples", std::to_string(of.each)},
                                 {"block", std::to_string(of.of_micro_batch.block)},
                                 {"most", std::to_string(of.of_micro_batch.samples)}}) +
            "}";
  }
  return text + "\n";
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
/// nanoseconds with ByProfile, memory in bytes, and the bytes that cross each boundary. With
/// Lengths of one input it says what samples of several lengths take.
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
    std::string const title =
        std::string(detail::type_name<typename Trainer::model>()) + ", " + compiled::schedule::name;
    detail::drawing_words const words{title, profiled ? "ns" : "FLOP", "B"};
    if constexpr (compiled::lengths::block > 0)
      if (detail::inputs_with_lengths<compiled>().size() == 1) {
        detail::length_costs const lengths{detail::room_of<compiled>(),
                                           detail::squares_of<compiled>(problem)};
        return schedules::problem_json(problem, words, &lengths);
      }
    return schedules::problem_json(problem, words);
  } else {
    static_assert(
        detail::accepted<decltype(detail::diagnosis_of<wrong::only_a_pipeline_can_be_explained,
                                                       Trainer>())>::value);
    return {};
  }
}

}  // namespace pp
