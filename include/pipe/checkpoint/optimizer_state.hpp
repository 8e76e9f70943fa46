// SPDX-License-Identifier: BSL-1.0
//
// Optimizer state in safetensors files, under the names of PyTorch's flattened state dict
// (torch.distributed.checkpoint.state_dict with flatten_optimizer_state_dict): beside a file of
// weights such a file lets a run begin here and go on in PyTorch, or the other way round.
//
//     state.NAME.exp_avg, ...     the arrays that the optimizer keeps for parameter NAME, of the
//                                 parameter's shape
//     state.NAME.step             the number of steps
//     state.NAME.mu_product       and what else PyTorch keeps that follows from it and the settings
//     param_groups.NAME...        settings: not written, and not read
//
// The rows of the table of a run's states (run_states.hpp) that are optimizer state are written, so
// any cut and any division among replicas reads them.
//
// Not a pickle, as PyTorch's optimizer.state_dict() is saved: reading one runs a program, and its
// numbers of parameters depend on the order in which an optimizer was given them. Not a checkpoint,
// which holds what this library needs for the same bits. A trainer counts steps once, so a file
// whose parameters differ in them is refused, and so is one without some of the tensors.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/checkpoint/run_states.hpp>
#include <pipe/checkpoint/state_blocks.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/weights/name_map.hpp>
#include <pipe/weights/named_parameter.hpp>
#include <pipe/weights/safetensors_reader.hpp>
#include <pipe/weights/weights.hpp>

namespace pp {

namespace detail {

/// An optimizer whose arrays of state have names.
template <class O>
concept names_its_state = requires { O::states_of(custom::tensor_kind::vector); };

template <class O>
constexpr auto diagnose_state_names() {
  if constexpr (names_its_state<O>)
    return std::type_identity<nothing_wrong>{};
  else
    return diagnosis_of<wrong::optimizer_state_needs_names, O>();
}

/// Saving and loading: see save_optimizer_state and load_optimizer_state.
template <class Trainer>
class optimizer_states {
  using T = typename Trainer::element;
  using parameter_list = row_list<named_parameter<T>>;
  /// A row of the table of states, and its tensor in a file.
  struct state {
    run_state<T> row;
    named_parameter<T> in_file;  ///< without values
  };

 public:
  /// map: from the names of parameters to names in the file.
  ///
  /// throws: data_error as names_there
  optimizer_states(Trainer& trainer, name_map const& map)
      : optimizer_states(trainer, named_parameters(trainer), map) {}

  void save(std::string const& path) {
    // PyTorch counts steps in F32.
    if (trainer_.steps_ > 1L << 24)
      throw data_error("cannot save " + in_quotes(path) + ": PyTorch counts at most 16777216 " +
                       "steps, this trainer has made " + std::to_string(trainer_.steps_));
    parameter_list tensors;
    for (state const& s : states_) tensors.push_back(s.in_file);
    std::vector<T> numbers;
    for (auto const& [name, which] : numbers_) {
      tensors.push_back({name, {}, false, 1, 1, {}, true});
      numbers.push_back(T(number_at(trainer_.steps_, which)));
    }
    auto& engine = *processes_.parameters.engine;
    state_collector<T, typename Trainer::engine> collector(engine);
    save_in_all(processes_, path, [&] {
      for (state const& s : states_) collector.reserve(s.in_file);
    });
    save_together<T>(
        processes_, tensors, path, stored_type_of<T>(), &copy_own_out<T>,
        metadata_of(
            {{"format", "pt"}, {optimizer_key, text_of_optimizer(trainer_.settings_.optimizer)}}),
        [&](std::size_t i, use_of_parameter<T> use) {
          named_parameter<T> part{tensors[i].name, {}, false, 1, 1, {}};
          if (i >= states_.size()) {
            part.values = std::span(&numbers[i - states_.size()], 1);
            return use(part);
          }
          std::exception_ptr failure;
          collector.begin(states_[i].in_file, states_[i].row.pieces);
          collector.blocks([&](std::span<T> block) {
            part.columns = int(block.size());
            part.values = block;
            if (!failure) try {
                use(part);
              } catch (...) {
                failure = std::current_exception();
              }
          });
          if (failure) std::rethrow_exception(failure);
        });
  }
  /// given: the number of steps, for a file that does not have the number.
  void load(std::string const& path, std::optional<long> given) {
    std::optional<safetensors_reader> opened;
    row_list<safetensors_place> arrays;
    std::vector<T> block;
    long steps = 0;
    load_together(
        processes_, path,
        [&] {
          safetensors_reader const& file = opened.emplace(path);
          require_optimizer(file);
          steps = steps_in(file, given);
          require_numbers(file, steps);
          parameter_list to;
          std::size_t most = 0;
          for (state const& s : states_) {
            to.push_back(s.in_file);
            to.back().elsewhere = std::none_of(s.row.pieces.begin(), s.row.pieces.end(),
                                               [](auto const& p) { return p.here != nullptr; });
            to.back().in_parts = !to.back().elsewhere;
            most = std::max(most, most_of_block(s.in_file));
          }
          block.resize(most);
          arrays = arrays_in(file);
          return check_tensors<T>(to, arrays, file, source(file), load_policy::strict, {},
                                  reading::twice);
        },
        [&](auto& checked) {
          checked.write([&](std::size_t i, stored_type type, named_parameter<T> const& of,
                            read_blocks blocks) {
            long at = 0;
            blocks([&](std::span<std::byte const> bytes) {
              std::span<T> const part(block.data(), bytes.size() / std::size_t(size_of(type)));
              decode(type, bytes.data(), part);
              put_block<T>(of, states_[i].row.pieces, at, part);
              at += long(part.size());
            });
          });
        },
        [&] { processes_.parameters.engine->spoil(trainer_.steps_); });
    trainer_.steps_ = steps;
    processes_.parameters.engine->states_changed();
  }

 private:
  static constexpr char optimizer_key[] = "optimizer";  ///< of the metadata

  optimizer_states(Trainer& trainer, parameter_list const& all, name_map const& map)
      : trainer_(trainer), processes_(trainer.processes()) {
    row_list<kept_text> here;
    name_index number_of;
    for (named_parameter<T> const& p : all) {
      number_of.add(p.name);
      here.push_back(p.name);
    }
    number_of.sort();
    row_list<kept_text> const there = names_there(here, map);
    using table = run_state_table<typename Trainer::compiled, typename Trainer::engine>;
    for (run_state<T>& row : table::of(processes_.parameters)) {
      auto const [array, name] = array_and_parameter(row.of.name);
      if (array.empty()) continue;
      std::size_t const i = std::size_t(number_of.find(name));
      std::string const beginning = joined_text({"state.", there[i], "."});
      for_all_numbers(0, [&](std::string_view which, double) {
        numbers_.emplace(beginning + std::string(which), which);
      });
      if (!uses(array)) {
        unused_.insert(beginning + array);
        continue;
      }
      named_parameter<T> in_file = as_in_pytorch(row.of, array, all[i].transposed);
      in_file.name = joined_text({beginning, in_file.name});
      states_.push_back({std::move(row), std::move(in_file)});
    }
  }
  /// "exp_avg" and "0.weight" of "optimizer/exp_avg/0.weight"; empty texts for another kind of
  /// state.
  static std::pair<std::string, std::string> array_and_parameter(std::string const& name) {
    constexpr std::string_view kind = "optimizer/";
    if (!name.starts_with(kind)) return {};
    std::size_t const end = name.find('/', kind.size());
    return {name.substr(kind.size(), end - kind.size()), name.substr(end + 1)};
  }
  /// Whether an array of the optimizer has a meaning with its settings.
  bool uses(std::string_view array) const {
    auto const& o = trainer_.settings_.optimizer;
    if constexpr (requires { o.uses_state(array); })
      return o.uses_state(array);
    else
      return true;
  }
  /// The name and shape that PyTorch gives an array. Averages of the rows and columns of a matrix
  /// (Adafactor) are a column and a row in PyTorch, of the matrix in a file's layout.
  static named_parameter<T> as_in_pytorch(named_parameter<T> of, std::string const& array,
                                          bool transposed) {
    bool const is_of_rows = array == "row_average", is_of_columns = array == "column_average";
    of.name = array;
    of.elsewhere = true;
    if (is_of_rows || is_of_columns) {
      of.name = is_of_rows == transposed ? "col_var" : "row_var";
      if (is_of_rows == transposed)
        of.shape.push_front(1);
      else
        of.shape.push_back(1);
    }
    return of;
  }

  static weights_source source(safetensors_reader const& file) {
    return {"in '" + file.name() + "'", "the file", "optimizer states", "tensor", "trainer"};
  }
  [[noreturn]] static void refuse(safetensors_reader const& file, std::string const& why) {
    throw data_error("cannot load " + in_quotes(file.name()) + ": " + why);
  }
  /// Throws data_error for a file that names another optimizer, as those of save_optimizer_state
  /// do.
  void require_optimizer(safetensors_reader const& file) const {
    std::string const ours = text_of_optimizer(trainer_.settings_.optimizer);
    auto const theirs = file.metadata().find(optimizer_key);
    if (theirs != file.metadata().end() && theirs->second.view() != ours)
      refuse(file,
             "it has the state of " + std::string(theirs->second) + ", this trainer has " + ours);
  }
  /// Calls use(name, value) for the numbers that PyTorch keeps beside arrays, after `steps` steps.
  template <class Use>
  void for_all_numbers(long steps, Use use) const {
    use(step_name, double(steps));
    auto const& o = trainer_.settings_.optimizer;
    if constexpr (requires { o.for_each_state_number(steps, use); })
      o.for_each_state_number(steps, use);
  }
  double number_at(long steps, std::string_view which) const {
    double found = 0;
    for_all_numbers(steps, [&](std::string_view name, double value) {
      if (name == which) found = value;
    });
    return found;
  }
  /// The tensors that are neither settings, nor such numbers, nor unused.
  row_list<safetensors_place> arrays_in(safetensors_reader const& file) const {
    row_list<safetensors_place> all;
    for (safetensors_place const& t : file.tensors())
      if (!t.name.starts_with("param_groups.") && !numbers_.contains(t.name) &&
          !unused_.contains(t.name))
        all.push_back(t);
    return all;
  }
  /// The number of steps of all parameters.
  ///
  /// throws: data_error if the number is nowhere, differs between parameters, or is no number of
  ///         steps
  long steps_in(safetensors_reader const& file, std::optional<long> given) const {
    std::optional<long> steps = given;
    std::string where = "the argument";
    for (safetensors_place const& t : file.tensors()) {
      auto const of = numbers_.find(t.name);
      if (of == numbers_.end() || of->second != step_name) continue;
      std::string const tensor = "tensor " + in_quotes(t.name);
      double const number = number_in(file, t);
      if (!(number >= 0 && number < 9e15 && double(long(number)) == number))
        refuse(file,
               tensor + ": expected a number of steps, found " + std::string(real_text(number, 9)));
      long const found = long(number);
      if (steps && *steps != found)
        refuse(file, tensor + ": " + std::to_string(found) + " steps, but " +
                         std::to_string(*steps) + " in " + where);
      steps = found;
      where = tensor;
    }
    if (!steps)
      refuse(file, "no tensor state.NAME.step has the number of steps: give it as an argument");
    return *steps;
  }

  static double number_in(safetensors_reader const& file, safetensors_place const& t) {
    if (!is_real(t.type) || t.end - t.begin != std::uint64_t(size_of(t.type)))
      refuse(file, "tensor " + in_quotes(t.name) + ": expected one F64, F32, F16 or BF16, found " +
                       text_of_type(t) + " of shape " + text_of_shape(t.shape));
    std::byte bytes[8];
    file.read(t.begin, {bytes, std::size_t(t.end - t.begin)});
    double number = 0;
    decode(t.type, bytes, std::span(&number, 1));
    return number;
  }
  /// Throws data_error for numbers of other settings than the trainer's.
  void require_numbers(safetensors_reader const& file, long steps) const {
    for (safetensors_place const& t : file.tensors()) {
      auto const of = numbers_.find(t.name);
      if (of == numbers_.end() || of->second == step_name) continue;
      double const ours = number_at(steps, of->second), theirs = number_in(file, t);
      if (!(libm::fabs(ours - theirs) <= 1e-4))
        refuse(file, "tensor " + in_quotes(t.name) + ": " + std::string(real_text(theirs, 9)) +
                         " after " + std::to_string(steps) +
                         " steps, which other settings have made: by " + "this trainer's it is " +
                         std::string(real_text(ours, 9)));
    }
  }

  static constexpr std::string_view step_name = "step";
  Trainer& trainer_;
  decltype(std::declval<Trainer&>().processes()) processes_;
  std::vector<state> states_;
  std::map<std::string, std::string> numbers_;  ///< by the name of a tensor: which number
  std::set<std::string> unused_;                ///< tensors that are neither written nor read
};

}  // namespace detail

/// Saves the optimizer state of all trained parameters, in the model's own type, with the number of
/// steps beside each: what PyTorch's AdamW, Adam, NAdam, Adamax, RMSprop, Adagrad, SGD, Adafactor
/// and Muon keep. If ranks are in several processes, all processes call this function.
///
/// law:    equal trainers give equal bytes, whatever their stages, schedule and threads
/// throws: in all processes, if it does in one: file_error, and the previous file is unchanged;
///         data_error for more than 2^24 steps, or a map that does not fit
template <class Trainer>
void save_optimizer_state(Trainer& trainer, std::string const& path, name_map const& names = {}) {
  using O = typename Trainer::optimizer_type;
  static_assert(detail::accepted<decltype(detail::diagnose_state_names<O>())>::value);
  if constexpr (detail::names_its_state<O>)
    detail::optimizer_states<Trainer>(trainer, names).save(path);
}

/// Loads optimizer state, converting to the model's type. trainer.steps() becomes the number of
/// steps in the file, which must be the same for all parameters; `steps` is for a file without the
/// number, such as that of PyTorch's SGD. Settings are the trainer's, and no parameter changes:
/// load the weights as well. `names` maps parameter names to names in the file. If ranks are in
/// several processes, all of them call it.
///
/// law:    n steps are k steps, save_weights and save_optimizer_state, load both in another trainer
///         with the same seed, and n - k steps, bit for bit, as for checkpoints; but averages,
///         accumulated gradients and the loss scale are in neither file
/// throws: in all processes, and the trainer is as it was: file_error if the file cannot be read;
///         data_error if the file does not fit: see load_weights; or if numbers of steps differ
template <class Trainer>
void load_optimizer_state(Trainer& trainer, std::string const& path, name_map const& names = {},
                          std::optional<long> steps = {}) {
  using O = typename Trainer::optimizer_type;
  static_assert(detail::accepted<decltype(detail::diagnose_state_names<O>())>::value);
  if constexpr (detail::names_its_state<O>)
    detail::optimizer_states<Trainer>(trainer, names).load(path, steps);
}

}  // namespace pp
