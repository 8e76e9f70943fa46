// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints: trainer.save(path) and trainer.load(path). Saving and loading walk one table of the
// run's states (run_states.hpp). Beside the states a file has the run's numbers as tensors of 64
// bits and, in its metadata, the optimizer and the program's data position. Each of several
// processes can write the rows, and pieces of rows, that it has: see checkpoint_parts.hpp.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/together.hpp>
#include <pipe/checkpoint/checkpoint_match.hpp>
#include <pipe/checkpoint/checkpoint_parts.hpp>
#include <pipe/checkpoint/checkpoint_tensors.hpp>
#include <pipe/checkpoint/loaded_run.hpp>
#include <pipe/checkpoint/resumed_run.hpp>
#include <pipe/checkpoint/run_numbers.hpp>
#include <pipe/checkpoint/run_states.hpp>
#include <pipe/checkpoint/state_blocks.hpp>
#include <pipe/checkpoint/with_checkpoints.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/train/parts/accumulated_batches.hpp>
#include <pipe/train/parts/trainer_processes.hpp>
#include <pipe/weights/named_parameter.hpp>
#include <pipe/weights/safetensors_header.hpp>

namespace pp {

namespace detail {

/// Saving and loading: see with_checkpoints. Both have three parts: work that may fail in one
/// process alone, the agreement of all processes, and work that cannot fail.
template <class Trainer>
struct checkpoint_of {
  using T = typename Trainer::element;
  using compiled = typename Trainer::compiled;
  using engine = typename Trainer::engine;
  using states = row_list<run_state<T>>;

  /// Saves a checkpoint. like: the file whose mode the new file takes if it replaces none
  [[gnu::cold]] static void save(Trainer& trainer, std::string const& path,
                                 data_position const& position = {},
                                 checkpoint_files files = checkpoint_files::one,
                                 std::string const& like = {}) {
    checkpoint_target const to{path, like};
    require_same_replicas(trainer);
    with_table(trainer, files, [&](engine& e, states const& all, part_number part) {
      if constexpr (!is_one)
        if (part.count > 1) return save_parts(e, {to, part, head_of(trainer, position)}, all);
      collect(e, all, named(all), path, [&](auto const& write) {
        tensor_file<T> file(to, head_of(trainer, position), named(all));
        write(file);
      });
    });
  }
  /// Copies to memory what save() would write in this process. All processes call copy(). Returns
  /// the first file of a checkpoint in parts, which begin() gives its place.
  ///
  /// throws: as save, but not for files
  [[gnu::cold]] static part_saving copy(Trainer& trainer, data_position const& position,
                                        checkpoint_files files, tensor_copy<T>& to) {
    part_saving saving;
    require_same_replicas(trainer);
    with_table(trainer, files, [&](engine& e, states const& all, part_number part) {
      if (part.count == 1)
        return collect(e, all, named(all, true), "", [&](auto const& write) {
          write(to.begin(head_of(trainer, position), named(all)));
        });
      if constexpr (!is_one)
        save_in_all(agreement_in(e), "", [&] {
          saving = {{}, part, head_of(trainer, position)};
          states const own = own_states(e, all);
          write_own(own, to.begin(head_of_part(part), named(own)));
        });
    });
    return saving;
  }
  /// The bytes of memory that a copy takes in a process that writes: all tensors of a file.
  static std::size_t bytes(Trainer& trainer, checkpoint_files files) {
    std::size_t sum = 0;
    with_table(trainer, files, [&](engine& e, states const& all, part_number part) {
      if (part.count == 1)
        for (run_numbers const& n : numbers_of(trainer)) sum += n.bytes().size();
      for (run_state<T> const& s : part.count == 1 ? all : own_states(e, all))
        sum += sizeof(T) * std::size_t(size_of(s.of));
    });
    return sum;
  }
  /// The number of the part of a checkpoint that this process writes, and the number of all parts.
  [[gnu::cold]] static part_number part_of(Trainer& trainer, checkpoint_files files) {
    part_number mine;
    with_table(trainer, files, [&](engine&, states const&, part_number part) { mine = part; });
    return mine;
  }

  /// step: the number of steps that the run must have made; -1: any
  [[gnu::cold]] static resumed_run load(Trainer& trainer, std::string const& path, long step = -1) {
    auto const access = trainer.engine_.enter();
    trainer.averages_.require_out(trainer.steps_ + 1);
    engine& e = *trainer.engine_.operator->();
    states all;
    owner<loaded_run<T>> const read = load_together(
        agreement_in(e), path,
        [&] {
          all = states_of(trainer);
          return read_run<T>(expected_of(trainer, step), path, all);
        },
        [&](loaded_run<T>& run) {  // only reading again what was read, or a device, can fail
          for (loaded_state<T> const& state : run.states)
            take_state(state, all[state.row].pieces, run);
        },
        [&] { e.spoil(trainer.steps_); });
    set_numbers(trainer, read->numbers);
    e.states_changed();
    if constexpr (compiled::is_free)
      if (read->has_versions) e.versions_changed();
    return {trainer.steps_, trainer.accumulated_.count(), std::move(read->position),
            std::move(read->other_bits)};
  }

 private:
  friend optimizer_states<Trainer>;
  /// Whether one process has all ranks, so that no other process waits for it.
  static constexpr bool is_one = engine_agreement<engine>::are_one;
  /// throws: as compare_replicas
  [[gnu::cold]] static void require_same_replicas(Trainer& trainer) {
    auto const access = trainer.engine_.enter();
    compare_replicas<compiled>(trainer.parameter_places(), trainer.steps_);
  }

  /// Calls use(engine, table, part) with the states to be saved, and the number of this process's
  /// part.
  template <class Use>
  [[gnu::cold]] static void with_table(Trainer& trainer, checkpoint_files files, Use const& use) {
    auto const access = trainer.engine_.enter();
    trainer.averages_.require_out(trainer.steps_ + 1);
    engine& e = *trainer.engine_.operator->();
    states const all = saved_states_of(trainer);
    part_number part;
    if constexpr (!is_one)
      if (files != checkpoint_files::one) part = part_of(e, all);
    use(e, all, part);
  }
  /// Calls save(write) in the process that writes files; write(to) writes the states to a file or a
  /// copy, block by block in the order that `layouts` have, which all processes collect.
  ///
  /// path:   for messages: see save_in_all
  /// throws: in that process the exception of `save`, in the others file_error with the path
  template <class Save>
  [[gnu::cold]] static void collect(engine& e, states const& all,
                                    row_list<named_parameter<T>> const& layouts,
                                    std::string_view path, Save const& save) {
    state_collector<T, engine> collector(e);
    save_in_all(agreement_in(e), path, [&] {
      for (named_parameter<T> const& of : layouts) collector.reserve(of);
    });
    std::size_t next = 0;
    auto const read_next = [&](auto const& append) {
      collector.begin(layouts[next], all[next].pieces);
      ++next;
      collector.blocks(append);
    };
    auto const write = [&] {
      if (engine::writes_files())
        save([&](auto& to) {
          for (run_state<T> const& s : all)
            if (is_one && s.pieces.size() == 1)
              to.write(s.of, s.pieces[0].here), ++next;
            else
              to.write(s.of, read_next);
          to.commit();
        });
    };
    if constexpr (is_one) return write();
    auto const read_rest = [&] {
      auto const nothing = [](std::span<T>) {};
      collector.blocks(nothing);  // of a state whose blocks could not be written
      while (next < all.size()) read_next(nothing);
    };
    save_in_all(agreement_in(e), path, [&] { with_rest(write, read_rest); });
  }
  /// The states that a file has; accumulated gradients only where there are any.
  [[gnu::cold]] static states saved_states_of(Trainer const& trainer) {
    bool const has_accumulated = trainer.accumulated_.count() > 0;
    bool has_versions = true;
    if constexpr (compiled::is_free) has_versions = trainer.engine_->has_versions();
    states all;
    for (run_state<T>& s : states_of(trainer))
      if ((has_accumulated || !s.is_accumulated) && (has_versions || !s.is_older))
        all.push_back(std::move(s));
    return all;
  }
  /// The table of a trainer's states.
  [[gnu::cold]] static states states_of(Trainer const& trainer) {
    return run_state_table<compiled, engine>::of(trainer.parameter_places());
  }

  // ---- the numbers of a run ----

  /// The numbers as they are now: steps, seed, accumulation, loss scale.
  [[gnu::cold]] static row_list<run_numbers> numbers_of(Trainer const& trainer) {
    row_list<run_numbers> all;
    all.push_back({"run/steps", stored_type::i64, {}})
        .bits.push_back(std::uint64_t(trainer.steps_));
    all.push_back({"run/seed", stored_type::u64, {}}).bits.push_back(trainer.settings_.seed);
    all.push_back({"run/accumulated", stored_type::f64, {}});
    all.push_back({"run/loss_scale", stored_type::f64, {}});
    auto sum = trainer.accumulated_;
    sum.for_all_numbers([&](auto n) { all[of_run::accumulated].push_back(double(n)); });
    list<double, 2> scaling{};
    if constexpr (compiled::precision::scales_loss) scaling = trainer.engine_->loss_scaling();
    for (double const n : scaling) all[of_run::loss_scale].push_back(n);
    return all;
  }
  /// Sets the numbers from a file.
  ///
  /// needs: require_numbers() has not thrown
  [[gnu::cold]] static void set_numbers(Trainer& trainer, row_list<run_numbers> const& from) {
    trainer.steps_ = long(from[of_run::steps].bits[0]);
    trainer.settings_.seed = from[of_run::seed].bits[0];
    std::size_t next = 0;
    trainer.accumulated_.for_all_numbers([&](auto& n) {
      n = std::remove_reference_t<decltype(n)>(from[of_run::accumulated].real(next++));
    });
    if constexpr (compiled::precision::scales_loss)
      if (double const scale = from[of_run::loss_scale].real(0); scale > 0)
        trainer.engine_->set_loss_scaling({{scale, from[of_run::loss_scale].real(1)}});
  }

  // ---- saving ----

  [[gnu::cold]] static checkpoint_head head_of(Trainer const& trainer,
                                               data_position const& position) {
    return {numbers_of(trainer),
            metadata_of({{"format", "pt"},
                         {"library", text_of_version()},
                         {"optimizer", text_of_optimizer(trainer.settings_.optimizer)},
                         {"arithmetic", arithmetic_of(*trainer.engine_.operator->())},
                         {"position", position.text}})};
  }
  [[gnu::cold]] static checkpoint_head head_of_part(part_number part) {
    return {
        {},
        metadata_of({{"format", "pt"}, {"library", text_of_version()}, {part_key, part.text()}})};
  }
  /// The states' names and shapes, with the layout of files, or of memory.
  [[gnu::cold]] static row_list<named_parameter<T>> named(states const& of,
                                                          bool is_in_memory = false) {
    row_list<named_parameter<T>> all;
    for (run_state<T> const& s : of) all.push_back(s.of).transposed &= !is_in_memory;
    return all;
  }
  /// Writes states of a single piece, which this process has, to a file or a copy.
  template <class To>
  [[gnu::cold]] static void write_own(states const& own, To& to) {
    for (run_state<T> const& s : own) to.write(s.of, s.pieces[0].here);
    to.commit();
  }

  [[gnu::cold]] static part_number part_of(engine& e, states const& all) {
    part_number part;
    if constexpr (requires { e.process(); }) {
      row_list<bool> has_states(std::size_t(e.processes()));
      for (run_state<T> const& s : all)
        for (state_piece<T> const& p : s.pieces) has_states[std::size_t(p.process)] = true;
      part.count = 0;
      for (int p = 0; p < e.processes(); ++p) {
        part.count += has_states[std::size_t(p)];
        if (p == e.process() && has_states[std::size_t(p)]) part.number = part.count;
      }
    }
    return part;
  }
  /// The states that this process writes, and its pieces of states that processes divide.
  [[gnu::cold]] static states own_states(engine& e, states const& all) {
    states own;
    if constexpr (requires { e.process(); })
      for (run_state<T> const& s : all)
        for (state_piece<T> const& p : s.pieces)
          if (p.process == e.process()) add_own(own, s, p);
    return own;
  }
  [[gnu::cold]] static void add_own(states& own, run_state<T> const& s, state_piece<T> const& p) {
    if (s.pieces.size() == 1) return void(own.push_back(s));
    constexpr long most = 1L << 30;  // a shape's extents are of type int
    for (long at = 0; at < p.count; at += most) {
      long const begin = p.begin + at, count = std::min(p.count - at, most);
      own.push_back(
          {{joined_text({piece_prefix, begin, "/", s.of.name}), {count}, false, 1, int(count), {}},
           s.is_accumulated,
           s.is_older,
           {{begin, count, p.process, p.here + at}}});
    }
  }
  /// Saves a checkpoint in parts. All processes call save_parts().
  [[gnu::cold]] static void save_parts(engine& e, part_saving saving, states const& all) {
    saving.number =
        least(e, engine::writes_files() ? new_saving() : std::numeric_limits<long>::max());
    auto const processes = agreement_in(e);
    std::string const path = saving.to.path;
    try {
      save_in_all(processes, path, [&] {
        if (saving.part.number == 0) return;
        states const own = own_states(e, all);
        tensor_file<T> file(saving.target(), head_of_part(saving.part), named(own));
        write_own(own, file);
      });
      save_in_all(processes, path, [&] {
        if (engine::writes_files()) saving.complete();
      });
    } catch (rank_error const&) {
      throw;  // the first process may write the first file all the same
    } catch (...) {
      saving.remove();
      throw;
    }
  }
  // ---- loading ----

  /// The run of this trainer, with which a checkpoint is compared.
  [[gnu::cold]] static expected_run expected_of(Trainer const& trainer, long step) {
    return {numbers_of(trainer),
            text_of_optimizer(trainer.settings_.optimizer),
            arithmetic_of(*trainer.engine_.operator->()),
            run_state_table<compiled, engine>::older_kind,
            trainer.runs_.accumulations <= 1 && !compiled::divides_gradients,
            step};
  }
};

}  // namespace detail

}  // namespace pp
