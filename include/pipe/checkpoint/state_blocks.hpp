// SPDX-License-Identifier: BSL-1.0
//
// States of a run on their way to a file, block by block, from the processes that have parts of
// them: no process needs room for a whole state.
#pragma once

#include <cstddef>
#include <span>

#include <pipe/base/function_ref.hpp>
#include <pipe/checkpoint/run_states.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/file_blocks.hpp>
#include <pipe/weights/named_parameter.hpp>

namespace pp::detail {

/// Reads states one after the other, block by block, in the order of a file. In several processes
/// all of them make the same calls, and process 0, which writes files, gets all numbers.
template <class T, class Engine>
class state_collector {
 public:
  explicit state_collector(Engine& engine) : engine_(engine) {}

  /// Takes memory for the blocks of a state: two, of which one is for those of several pieces.
  void reserve(named_parameter<T> const& of) {
    std::size_t const count = most_of_block(of);
    if (block_.size() < count) block_.resize(count), packed_.resize(count);
  }
  /// Begins a state, of the layout `of`, for which there is memory.
  void begin(named_parameter<T> const& of, row_list<state_piece<T>> const& pieces) noexcept {
    of_ = &of, pieces_ = &pieces, at_ = 0;
  }
  /// append(numbers) for each block that is left of it, unless it has thrown.
  [[gnu::cold]] void blocks(function_ref<void(std::span<T>)> append) {
    for (long const size = of_ != nullptr ? size_of(*of_) : 0; at_ < size;) {
      long const begin = at_, count = std::min(block_of(*of_), size - at_);
      at_ += count;
      append(collect(begin, count));
    }
  }

 private:
  /// The numbers [begin, begin + count) of the state, in the order of its file.
  std::span<T> collect(long begin, long count) {
    if constexpr (requires { engine_.broadcast(0, nullptr, 0L); })
      collect_from_all(begin, count);
    else
      for (state_piece<T> const& p : *pieces_)
        if (p.here != nullptr) get_block<T>(*of_, p, begin, {block_.data(), std::size_t(count)});
    return {block_.data(), std::size_t(count)};
  }
  /// A piece of another process is sent to all, so that process 0 has the whole block then.
  ///
  /// law: all processes make the same calls of the transport, whatever pieces they have
  void collect_from_all(long begin, long count) {
    bool const is_one = pieces_->size() == 1;
    if ((sent_ += count * long(sizeof(T))) > most_ahead) engine_.least(0), sent_ = 0;
    for (state_piece<T> const& p : *pieces_) {
      T* const numbers = is_one ? block_.data() : packed_.data();
      long n = 0;
      for_each_common(*of_, begin, count, p, [&](long k, long i) {
        long const to = is_one ? k : n;
        if (p.here != nullptr) numbers[to] = p.here[i - p.begin];
        ++n;
      });
      if (n > 0 && p.process != 0)
        engine_.broadcast(p.process, reinterpret_cast<char*>(numbers), n * long(sizeof(T)));
      T const* from = numbers;
      if (!is_one)
        for_each_common(*of_, begin, count, p,
                        [&](long k, long) { block_[std::size_t(k)] = *from++; });
    }
  }

  /// Bytes that a process may send before the others have received what came before.
  static constexpr long most_ahead = 1L << 20;

  Engine& engine_;
  named_parameter<T> const* of_ = nullptr;
  row_list<state_piece<T>> const* pieces_ = nullptr;
  long at_ = 0, sent_ = 0;
  row_list<T> block_, packed_;
};

}  // namespace pp::detail
