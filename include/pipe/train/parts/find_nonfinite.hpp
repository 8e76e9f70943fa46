// SPDX-License-Identifier: BSL-1.0
//
// Search for the first value that is not finite, after a step was rejected: in the inputs and
// labels, in the parameters, or else in a repeated run of the mini-batch. Launches are compared in
// the order in which one micro-batch passes through the model, so the result does not depend on the
// schedule.
#pragma once

#include <climits>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/data/inputs.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/train/parts/parameter_memory.hpp>
#include <pipe/train/parts/view_parameters.hpp>

namespace pp::detail {

/// Place of a value that is not finite, in a run.
///
/// law: places are ordered by micro-batch, then forward before backward, then program order; in
///      backward the later chunk comes first
struct fault_place {
  /// first_layer: the layer, or the first layer of a kernel that stores no values between its
  /// layers.
  int micro_batch = 0, chunk = 0, launch = 0, first_layer = 0;
  bool forward = true;
  bool is_one = false;  ///< false: no fault
  int last_layer = 0;

  /// Increases with the order of places, for any number of micro-batches. There are at most 2^13
  /// chunks, and 2^18 launches in each.
  long order() const {
    constexpr long chunks = 1L << 13, launches = 1L << 18;
    long const position = forward ? chunk : chunks - 1 - chunk;
    return ((2L * micro_batch + (forward ? 0 : 1)) * chunks + position) * launches + launch;
  }
};

/// Watcher of a run that keeps the first fault of each rank. Ranks write separate entries, so that
/// concurrent calls need no lock.
class nonfinite_search {
 public:
  [[gnu::cold]] explicit nonfinite_search(int ranks) : by_rank_(ranks) {}
  /// The callback of a job; `self` is the nonfinite_search.
  static void watch(void* self, launch_seen const& seen) {
    static_cast<nonfinite_search*>(self)->look(seen);
  }

  /// The first fault of all ranks; null if all values were finite. To be called after the run.
  [[gnu::cold]] fault_place const* found() const {
    fault_place const* first = nullptr;
    for (fault_place const& p : by_rank_)
      if (p.is_one && (first == nullptr || p.order() < first->order())) first = &p;
    return first;
  }

 private:
  /// Notes a launch of one rank, if it is earlier than the rank's fault and has a value that is not
  /// finite. The order is compared first, as this reads no operands.
  [[gnu::cold]] void look(launch_seen const& seen) {
    fault_place p{
        seen.micro_batch, seen.chunk, seen.launch, 0, seen.which == program::forward, true, 0};
    fault_place& mine = by_rank_[seen.rank];
    if (mine.is_one && p.order() >= mine.order()) return;
    int const k = seen.first_not_finite();
    if (k < 0) return;
    p.first_layer = p.last_layer = seen.operands[k].layer;
    // Values without a place, which a chain hands on within its kernel, cannot be looked at.
    for (int i = 0; i < k; ++i)
      if (seen.operands[i].at.where == region::none) {
        int const layer = seen.operands[i].layer;
        p.first_layer = layer < p.first_layer ? layer : p.first_layer;
        p.last_layer = layer > p.last_layer ? layer : p.last_layer;
      }
    mine = p;
  }

  heap_array<fault_place> by_rank_;  // first fault of each rank
};

/// Spelled type of a top-level layer, counted from 0: spelled_layer of a model.
using layer_names = std::string_view (*)(int layer);
/// Spelled type of a top-level layer of M, counted from 0.
template <class M>
std::string_view spelled_layer(int layer) {
  return [&]<class... L>(layers<L...>) {
    std::string_view const names[] = {type_name<as_written<L>>()...};
    return names[model_tables<M>::units[layer].leaf];
  }(typename M::leaves{});
}

/// The rejected step, for messages: `step 3 rejected, with what was accumulated`.
struct rejection {
  long step = 0;
  char const* with = "";
};

/// A value that is not finite, found by one process.
struct finding {
  long order = LONG_MAX;  ///< among findings of one kind; LONG_MAX: nothing was found
  std::string text;
};

/// Throws not_finite for the first finding of all processes, if there is one. All processes call it
/// and throw the same text: that of the finding with the least order and, among equal orders, the
/// least chunk.
///
/// law: reject_first throws in all processes or in none
template <class Engine>
[[gnu::cold]] void reject_first(finding&& f, Engine& engine) {
  long const first = least(engine, f.order);
  if (first == LONG_MAX) return;
  if constexpr (requires { engine.broadcast(0, nullptr, 0L); }) {
    long const from = least(engine, f.order == first ? engine.process() : LONG_MAX);
    if (from < 0 || from >= engine.processes())
      throw_error<error>({"process ", from, " has found a value that is not finite"});
    long size = long(f.text.size());
    engine.broadcast(int(from), reinterpret_cast<char*>(&size), long(sizeof(size)));
    if (size < 0 || size > 1 << 16)
      throw_error<error>({"process ", from, " says in ", size, " bytes what is not finite"});
    f.text.resize(std::size_t(size));
    engine.broadcast(int(from), f.text.data(), size);
  }
  throw not_finite(f.text);
}

/// An array of the batch: values[samples * per_sample] of input number `input`, or of the labels,
/// whose number follows that of the last input.
struct given_array {
  batch_part of;
  int input;
  void const* values;
  long per_sample;
};

/// Notes the first of some numbers of an array of the batch that is not finite.
///
/// before: how many numbers of the array are in front of x[count]
template <class T>
[[gnu::cold]] void find_in_array(finding& f, rejection const& r, given_array const& given,
                                 T const* x, long count, long before) {
  long const i = first_not_finite(x, count);
  if (i == count) return;
  batch_part const& of = given.of;
  long const position = before + i;
  f.order = (long(given.input) << 40) + position;
  f.text = sentence({"step ", r.step, " rejected", r.with, ": ", of.what, of.quote(), of.name,
                     of.quote(), ": ", double(x[i]), " at position ", position, " (sample ",
                     position / given.per_sample, ")"})
               .begin();
}

/// Looks for a value that is not finite in an array of the batch, unless there is a finding. here:
/// the part of the batch that this process has run; of a prefetched batch the process has no more
template <class T, class Engine>
[[gnu::cold]] void find_given(finding& f, rejection const& r, given_array const& given,
                              job const& j, [[maybe_unused]] job const& here,
                              [[maybe_unused]] Engine& engine) {
  if (f.order != LONG_MAX) return;
  long const per_sample = given.per_sample, count = j.batch.samples * per_sample;
  if constexpr (requires(T* to) { engine.download(to, given.values, count); })
    if (j.batch.place != data_place::host) {
      std::vector<T> downloaded;
      if (j.batch.place == data_place::device) {
        downloaded.resize(std::size_t(count));
        engine.download(downloaded.data(), given.values, count * long(sizeof(T)));
        return find_in_array(f, r, given, downloaded.data(), count, 0);
      }
      downloaded = engine.staged(given.input, here.batch.samples);
      if (downloaded.empty()) return;
      return find_in_array(f, r, given, downloaded.data(), here.batch.samples * per_sample,
                           (here.part.first_sample - j.part.first_sample) * per_sample);
    }
  find_in_array(f, r, given, static_cast<T const*>(given.values), count, 0);
}

/// Notes a value of a parameter that is not finite, if no value before it is noted.
[[gnu::cold]] inline void note_parameter(finding& f, rejection const& r, parameter_place const& p,
                                         int layer, layer_names name_of, long position,
                                         double value) {
  // Parts of a parameter may be in several processes.
  long const order = (long(p.index) << 44) + position;
  if (order >= f.order) return;
  f.order = order;
  f.text = sentence({"step ", r.step, " rejected", r.with, ": a parameter of layer ", layer, " (",
                     name_of(layer), "), ", p.rows, " x ", p.columns, ": ", value, " at position ",
                     position,
                     ", written or made by an update of an earlier step: was its learning rate too "
                     "large?"})
               .begin();
}

/// Looks for a value that is not finite in the parameters of model M.
template <class M, class T, class Engine>
[[gnu::cold]] finding find_in_parameters(rejection const& r,
                                         parameter_memory<Engine> const& parameters) {
  finding f;
  parameters.for_each_part(
      sizeof(T), [&](char* at, parameter_place const& p, long begin, long bytes) {
        T const* const values = reinterpret_cast<T const*>(at);
        long const count = bytes / long(sizeof(T)), i = first_not_finite(values, count);
        if (i < count)
          note_parameter(f, r, p, model_tables<M>::parameters[p.index].unit, &spelled_layer<M>,
                         begin / long(sizeof(T)) + i, double(values[i]));
      });
  return f;
}

/// Repeats a job without an update, with all launches watched, and finds the place of the first
/// value that is not finite. A kernel that runs several layers is named with all of them.
[[gnu::cold]] inline finding find_made(rejection const& r, job& j, int ranks, layer_names name_of,
                                       function_ref<void()> run) {
  nonfinite_search search(ranks);
  j.update.applies = false;
  j.watch.see = &nonfinite_search::watch;
  j.watch.of = &search;
  run();
  fault_place const* const p = search.found();
  if (p == nullptr) return {};
  std::string_view const first = name_of(p->first_layer), last = name_of(p->last_layer),
                         pass = p->forward ? "forward" : "backward";
  std::string text = sentence({"step ", r.step, " rejected", r.with,
                               ": a number that is not finite first appears in ", pass,
                               " of micro-batch ", p->micro_batch, ", stage ", p->chunk})
                         .begin();
  text += p->first_layer == p->last_layer
              ? sentence({", layer ", p->first_layer, " (", first, ")"}).begin()
              : sentence({", in one of layers ", p->first_layer, " (", first, ") to ",
                          p->last_layer, " (", last, "), which are one kernel"})
                    .begin();
  return {p->order(), text};
}

/// Throws not_finite with the first value that is not finite: in the inputs, the labels, the
/// parameters, or the run itself. here: the part of job j that this process runs. T: type of
/// parameters; run(): runs j again. All processes call reject_step for the same step.
///
/// law: all processes throw the text that a single process would throw
template <class M, class T, class Engine>
[[noreturn, gnu::cold]] void reject_step(rejection const& r, job& j, job const& here,
                                         long labels_per_sample, int ranks,
                                         parameter_memory<Engine> const& parameters,
                                         function_ref<void()> run) {
  // The prefetched mini-batch has made room for the next one, and lies where the run has read it.
  if (j.batch.place == data_place::loaded) j.batch.place = data_place::staged;
  Engine& engine = *parameters.engine;
  finding given;
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    ((model_tables<M>::inputs[Is].is_ids
          ? void()
          : find_given<T>(given, r,
                          {{Is == 0 ? "inputs" : "input ",
                            Is == 0 ? std::string_view() : input_name<M, Is>()},
                           Is,
                           j.batch.input[Is],
                           model_tables<M>::inputs[Is].form.elements()},
                          j, here, engine)),
     ...);
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
  if (!M::labels_are_ids)
    find_given<T>(given, r,
                  {{"labels"}, M::graph_type::size.inputs, j.batch.label, labels_per_sample}, j,
                  here, engine);
  reject_first(std::move(given), engine);
  reject_first(find_in_parameters<M, T>(r, parameters), engine);
  reject_first(find_made(r, j, ranks, &spelled_layer<M>, run), engine);
  throw_error<not_finite>({"step ", r.step, " rejected", r.with,
                           ": the loss or the gradient norm overflowed, though every term of it is "
                           "finite"});
}

}  // namespace pp::detail
