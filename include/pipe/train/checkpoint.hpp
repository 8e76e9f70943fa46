// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints: trainer.save(path) and trainer.load(path). Saving and loading walk one table of the
// run's states (parts/run_states.hpp); beside it a file has the run's numbers as tensors of 64 bits
// and, in its metadata, the optimizer and the program's data position.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/backend/host/kernels.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/train/checkpoint_file.hpp>
#include <pipe/train/parts/accumulation.hpp>
#include <pipe/train/parts/checkpoints.hpp>
#include <pipe/train/parts/run_numbers.hpp>
#include <pipe/train/parts/run_states.hpp>
#include <pipe/train/parts/trainer_processes.hpp>
#include <pipe/train/resumed_run.hpp>
#include <pipe/train/weights.hpp>

namespace pp {

namespace detail {

/// The optimizer as metadata has it: "AdamW, beta1 = 0.9, beta2 = 0.999", with the settings on
/// which its state depends.
template <class O>
std::string text_of_optimizer(O const& o) {
  std::string text = O::name;
  if constexpr (requires { o.for_each_state_setting([](char const*, double) {}); })
    o.for_each_state_setting([&](char const* name, double value) {
      char digits[32];
      char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
      text += std::string(", ") + name + " = ";
      text.append(digits, end);
    });
  return text;
}

/// The library's version as metadata has it: "0.1.0".
inline std::string text_of_version() {
  return std::to_string(PIPE_VERSION / 10000) + "." + std::to_string(PIPE_VERSION / 100 % 100) +
         "." + std::to_string(PIPE_VERSION % 100);
}

/// The tensors of a checkpoint that a trainer expects, and what does not fit.
class checkpoint_match {
 public:
  /// throws: data_error if the checkpoint is one of another optimizer
  checkpoint_match(checkpoint_reader const& file, std::string const& optimizer) : file_(file) {
    std::string const* const theirs = file.metadata("optimizer");
    if (theirs == nullptr || *theirs != optimizer)
      file.refuse("it is a run of " + (theirs == nullptr ? "no optimizer" : *theirs) +
                  ", this trainer has " + optimizer);
  }
  /// The number of a tensor, or -1 if there is none of that name, type and shape.
  long find(safetensors_place const& expected) {
    long const at = file_.find(expected.name);
    auto const misses = [&](std::string const& why) {
      problems_.push_back("tensor " + in_quotes(expected.name) + ": " + why);
      return -1L;
    };
    if (at < 0) return misses("not in the file");
    known_.insert(std::size_t(at));
    safetensors_place const& found = file_[std::size_t(at)];
    if (std::string const why = misfit_of_shape(expected.shape, found.shape); !why.empty())
      return misses(why);
    if (found.type != expected.type)
      return misses("expected " + text_of_type(expected) + ", found " + text_of_type(found));
    return at;
  }
  /// Throws data_error if what was looked for does not fit.
  void require() const {
    if (!problems_.empty())
      file_.refuse("it does not fit this trainer: " + text_of_problems(problems_));
  }
  /// The same, or if there are tensors that were not looked for.
  void require_all() {
    for (std::size_t i = 0; i < file_.size(); ++i)
      if (!known_.contains(i))
        problems_.push_back("tensor " + in_quotes(file_[i].name) + ": not of this trainer");
    require();
  }

 private:
  checkpoint_reader const& file_;
  std::set<std::size_t> known_;
  std::vector<std::string> problems_;
};

/// Converts a state to its bytes in a file, bit for bit, and passes them to append(bytes) in blocks
/// that stay in the cache until they are written.
///
/// shape: values[rows, columns], in the order of memory; bytes: in that of the file
/// cost:  a copy, bound by bytes
template <class T, class Append>
void store(named_parameter<T> const& of, T const* values, Append const& append) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr long numbers = (256L << 10) / long(sizeof(T)), cache_line = 64 / sizeof(T);
  long const rows = of.rows, columns = of.columns, length = of.transposed ? rows : columns,
             lines = of.transposed ? columns : rows;  // in the file
  long const most = std::max(numbers / std::max(length, 1L) / cache_line, 1L) * cache_line;
  std::vector<T> block(std::size_t(std::min(most, lines) * length));
  for (long first = 0; first < lines; first += most) {
    long const count = std::min(most, lines - first);
    if (of.transposed)
      host::portable::transpose<T>(values + first, rows, count, columns, block.data(), rows);
    else
      std::copy_n(values + first * length, count * length, block.begin());
    std::span<T> const stored(block.data(), std::size_t(count * length));
    for (T& number : stored)
      put_little_endian(std::bit_cast<bits>(number), reinterpret_cast<std::byte*>(&number));
    append(std::as_bytes(stored));
  }
}

/// Saving and loading: see with_checkpoints. Both have three parts: what may fail in one process
/// alone, the agreement of all, and what cannot fail.
template <class Trainer>
struct checkpoint_of {
  using T = typename Trainer::element;
  using compiled = typename Trainer::compiled;
  using engine = typename Trainer::engine;
  using states = std::vector<run_state<T>>;

  /// A checkpoint's file, to which numbers and then states are written.
  class tensor_file {
   public:
    template <class... A>
    explicit tensor_file(A&&... a) : to_(std::forward<A>(a)...) {}
    void write(run_numbers const& n) { to_.write(n.bytes()); }
    void write(named_parameter<T> const& of, T const* values) {
      to_.write([&](auto const& append) { store(of, values, append); });
    }
    void commit() { to_.commit(); }

   private:
    checkpoint_writer to_;
  };
  /// A checkpoint in memory, made as a file is. States are in the order of memory.
  class tensor_copy {
   public:
    /// Takes memory for `bytes` bytes of states, unless it has it from the copy before.
    ///
    /// throws: std::bad_alloc
    void reserve(std::size_t bytes) { values_.reserve(bytes / sizeof(T)); }
    tensor_copy& begin(std::vector<safetensors_place> places, safetensors_metadata metadata) {
      places_ = std::move(places);
      metadata_ = std::move(metadata);
      numbers_.clear(), states_.clear(), values_.clear();
      return *this;
    }
    void write(run_numbers const& n) { numbers_.push_back(n); }
    void write(named_parameter<T> const& of, T const* values) {
      states_.push_back(of);
      values_.insert(values_.end(), values, values + of.rows * std::ptrdiff_t(of.columns));
    }
    void commit() {}
    /// Writes the file.
    ///
    /// throws: as checkpoint_writer
    void save(std::string const& path) const {
      tensor_file to(path, places_, metadata_);
      for (run_numbers const& n : numbers_) to.write(n);
      T const* next = values_.data();
      for (named_parameter<T> const& of : states_) {
        to.write(of, next);
        next += of.rows * std::ptrdiff_t(of.columns);
      }
      to.commit();
    }

   private:
    std::vector<safetensors_place> places_;
    safetensors_metadata metadata_;
    std::vector<run_numbers> numbers_;
    std::vector<named_parameter<T>> states_;
    std::vector<T> values_;  // of all states
  };

  static void save(Trainer& trainer, std::string const& path, data_position const& position = {}) {
    collect(trainer, path, [&](states const& all, auto const& gather_next) {
      write(trainer, position, all, gather_next,
            [&](auto&&... a) { return tensor_file(path, std::forward<decltype(a)>(a)...); });
    });
  }
  /// Copies what save() would write, in the process that writes files. All processes call it.
  ///
  /// throws: as save, but not for files
  static void copy(Trainer& trainer, data_position const& position, tensor_copy& to) {
    collect(trainer, "a copy in memory", [&](states const& all, auto const& gather_next) {
      write(trainer, position, all, gather_next,
            [&](auto&&... a) -> tensor_copy& { return to.begin(std::forward<decltype(a)>(a)...); });
    });
  }
  /// The bytes of all tensors of a checkpoint of this trainer: what a copy takes of memory.
  static std::size_t bytes(Trainer& trainer) {
    auto const access = trainer.engine_.enter();
    std::size_t sum = 0;
    for (run_numbers const& n : numbers_of(trainer)) sum += n.bytes().size();
    for (run_state<T> const& s : saved_states_of(trainer)) sum += sizeof(T) * size_of(s);
    return sum;
  }

  static resumed_run load(Trainer& trainer, std::string const& path) {
    auto const access = trainer.engine_.enter();
    trainer.averages_.require_out(trainer.steps_ + 1);
    engine& e = *trainer.engine_.operator->();
    states all;
    loaded_run read;
    std::exception_ptr failure;
    try {
      all = states_of(trainer);
      read = read_run(trainer, path, all);
    } catch (...) {
      failure = std::current_exception();
    }
    bool const is_read = least(e, failure ? 0 : 1) == 1;
    if (failure) std::rethrow_exception(failure);
    if (!is_read) throw data_error("another process could not load " + in_quotes(path));
    // Nothing from here on can fail, but a device.
    for (loaded_state& state : read.states) scatter(state, all[state.row].pieces, read.room);
    set_numbers(trainer, read.numbers);
    e.states_changed();
    return {trainer.steps_, trainer.accumulated_.count(), std::move(read.position)};
  }

 private:
  friend optimizer_states<Trainer>;
  /// A file that was read, but has not been taken over.
  struct loaded_state {
    std::size_t row = 0;  // of the table
    named_parameter<T> to;
    std::unique_ptr<std::byte[]> bytes;
  };
  struct loaded_run {
    std::vector<run_numbers> numbers;
    std::vector<loaded_state> states;
    std::vector<T> room;  // for the largest state that is not consecutive in memory
    data_position position;
  };

  /// Calls save(table, gather_next) in the process that writes files; gather_next() returns the
  /// values of the next state of the table, which all processes collect.
  ///
  /// throws: in that process what `save` has thrown, in the others file_error with the name
  template <class Save>
  static void collect(Trainer& trainer, std::string const& name, Save const& save) {
    auto const access = trainer.engine_.enter();
    trainer.averages_.require_out(trainer.steps_ + 1);
    engine& e = *trainer.engine_.operator->();
    states const all = saved_states_of(trainer);
    std::vector<T> room;
    std::size_t next = 0;
    auto const gather_next = [&]() -> T const* { return gather(e, all[next++], room); };
    std::exception_ptr failure;
    if (engine::writes_files()) try {
        save(all, gather_next);
      } catch (...) {
        failure = std::current_exception();
      }
    while (next < all.size()) gather_next();
    bool const is_saved = least(e, failure ? 0 : 1) == 1;
    if (failure) std::rethrow_exception(failure);
    if (!is_saved) throw file_error("the process of rank 0 could not save " + in_quotes(name));
  }
  /// The states that a file has: accumulated gradients only if there are any.
  static states saved_states_of(Trainer const& trainer) {
    states all = states_of(trainer);
    if (trainer.accumulated_.count() == 0)
      std::erase_if(all, [](run_state<T> const& s) { return s.is_accumulated; });
    return all;
  }
  /// The table of a trainer's states.
  static states states_of(Trainer const& trainer) {
    return run_state_table<compiled, engine>::of(trainer.parameter_places());
  }
  static safetensors_place place_of(run_state<T> const& s) {
    return {s.of.name, stored_type_of<T>(), s.of.shape};
  }
  static std::size_t size_of(run_state<T> const& s) {
    return std::size_t(s.of.rows) * std::size_t(s.of.columns);
  }

  // ---- the numbers of a run ----

  enum of_run : std::size_t { steps, seed, accumulated, loss_scale };

  /// The numbers as they are now: steps, seed, accumulation, loss scale.
  static std::vector<run_numbers> numbers_of(Trainer const& trainer) {
    std::vector<run_numbers> all{
        {"run/steps", stored_type::i64, {std::uint64_t(trainer.steps_)}},
        {"run/seed", stored_type::u64, {trainer.settings_.seed}},
        {"run/accumulated", stored_type::f64, {}},
        {"run/loss_scale", stored_type::f64, {}},
    };
    accumulation sum = trainer.accumulated_;
    sum.for_each_number([&](auto n) { all[accumulated].push_back(double(n)); });
    list<double, 2> scaling{};
    if constexpr (compiled::precision::scales_loss) scaling = trainer.engine_->loss_scaling();
    for (double const n : scaling) all[loss_scale].push_back(n);
    return all;
  }
  /// Sets them from a file.
  ///
  /// needs: require_numbers() has not thrown
  static void set_numbers(Trainer& trainer, std::vector<run_numbers> const& from) {
    trainer.steps_ = long(from[steps].bits[0]);
    trainer.settings_.seed = from[seed].bits[0];
    std::size_t next = 0;
    trainer.accumulated_.for_each_number(
        [&](auto& n) { n = std::remove_reference_t<decltype(n)>(from[accumulated].real(next++)); });
    if constexpr (compiled::precision::scales_loss)
      if (double const scale = from[loss_scale].real(0); scale > 0)
        trainer.engine_->set_loss_scaling({{scale, from[loss_scale].real(1)}});
  }

  // ---- saving ----

  /// Writes a checkpoint, in one process, to what make(tensors, metadata) returns: a
  /// file or a copy. gather_next(): the values of the next state of the table
  template <class GatherNext, class Make>
  static void write(Trainer const& trainer, data_position const& position, states const& all,
                    GatherNext const& gather_next, Make const& make) {
    std::vector<run_numbers> const numbers = numbers_of(trainer);
    std::vector<safetensors_place> places;
    for (run_numbers const& n : numbers) places.push_back(n.place());
    for (run_state<T> const& s : all) places.push_back(place_of(s));
    decltype(auto) to =
        make(std::move(places),
             safetensors_metadata{{"format", "pt"},
                                  {"library", text_of_version()},
                                  {"optimizer", text_of_optimizer(trainer.settings_.optimizer)},
                                  {"position", position.text}});
    for (run_numbers const& n : numbers) to.write(n);
    for (run_state<T> const& s : all) to.write(s.of, gather_next());
    to.commit();
  }
  /// A state in the order of memory: where it is, or collected from all processes, which call this
  /// for the same states.
  static T* gather(engine& e, run_state<T> const& s, std::vector<T>& room) {
    constexpr bool has_others = requires { e.broadcast(0, nullptr, 0L); };
    if (!has_others && s.pieces.size() == 1) return s.pieces[0].here;
    room.resize(size_of(s));
    for (state_piece<T> const& p : s.pieces) {
      T* const to = room.data() + p.begin;
      if (p.here != nullptr) std::memcpy(to, p.here, sizeof(T) * std::size_t(p.count));
      if constexpr (has_others)
        e.broadcast(p.process, reinterpret_cast<char*>(to), p.count * long(sizeof(T)));
    }
    return room.data();
  }

  // ---- loading ----

  /// Reads everything that this process needs, and compares it with the trainer.
  ///
  /// throws: see load
  static loaded_run read_run(Trainer const& trainer, std::string const& path, states const& all) {
    checkpoint_reader const file(path);
    loaded_run run;
    if (std::string const* const text = file.metadata("position")) run.position.text = *text;
    run.numbers = numbers_of(trainer);
    checkpoint_match match(file, text_of_optimizer(trainer.settings_.optimizer));
    for (run_numbers& n : run.numbers)
      if (long const tensor = match.find(n.place()); tensor >= 0) {
        auto const bytes = bytes_of(file, tensor);
        n.set(bytes.get());
      }
    match.require();
    bool const has_accumulated = require_numbers(trainer, file, run.numbers);
    std::vector<long> tensors;
    for (run_state<T> const& s : all)
      tensors.push_back(s.is_accumulated && !has_accumulated ? -1 : match.find(place_of(s)));
    match.require_all();
    std::size_t room = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (tensors[i] < 0 || !is_here(all[i])) continue;
      run.states.push_back({i, all[i].of, bytes_of(file, tensors[i])});
      if (all[i].pieces.size() > 1) room = std::max(room, size_of(all[i]));
    }
    run.room.resize(room);
    return run;
  }
  /// The bytes of a tensor, compared with their checksum.
  static std::unique_ptr<std::byte[]> bytes_of(checkpoint_reader const& file, long tensor) {
    safetensors_place const& place = file[std::size_t(tensor)];
    auto bytes = memory_for(place.end - place.begin, "one of its tensors", file.name());
    file.read(std::size_t(tensor), {bytes.get(), std::size_t(place.end - place.begin)});
    return bytes;
  }
  /// Whether mini-batches were accumulated.
  ///
  /// throws: data_error for numbers that no run has, or if this trainer does not accumulate
  static bool require_numbers(Trainer const& trainer, checkpoint_reader const& file,
                              std::vector<run_numbers> const& of) {
    auto const is_below = [](double n, double end) { return n >= 0 && n < end; };
    run_numbers const &sum = of[accumulated], &scaling = of[loss_scale];
    double const count = sum.real(0);
    if (of[steps].bits[0] >> 62 != 0 || !sum.is_count(0, 2e9) || !is_below(sum.real(1), 1e300) ||
        !is_below(sum.real(2), 1e300) || !sum.is_count(4, 9e15) ||
        !is_below(scaling.real(0), 1e38) || !scaling.is_count(1, 2e9))
      file.refuse("its numbers of steps or of accumulated mini-batches are those of no run");
    if (count > 0 && (trainer.leaves_.leaves > 1 || compiled::zero::level > 1))
      file.refuse(
          "it has accumulated gradients, to which a mini-batch of several leaves, or with "
          "divided gradients, adds none");
    return count > 0;
  }
  /// Whether this process has a part of a state.
  static bool is_here(run_state<T> const& s) {
    return std::any_of(s.pieces.begin(), s.pieces.end(),
                       [](state_piece<T> const& p) { return p.here != nullptr; });
  }
  /// Copies a state from a file's bytes to the memory of this process.
  static void scatter(loaded_state& from, std::vector<state_piece<T>> const& pieces,
                      std::vector<T>& room) noexcept {
    bool const is_one = pieces.size() == 1;
    from.to.values =
        is_one ? std::span(pieces[0].here, std::size_t(pieces[0].count)) : std::span(room);
    copy_in(stored_type_of<T>(), from.bytes.get(), from.to);
    for (state_piece<T> const& p : pieces)
      if (!is_one && p.here != nullptr)
        std::memcpy(p.here, room.data() + p.begin, sizeof(T) * std::size_t(p.count));
  }
};

}  // namespace detail

}  // namespace pp
