// SPDX-License-Identifier: BSL-1.0
//
// Problems whose micro-batches have unequal work, as those of samples of several lengths have.
// Orders are made for equal times, so a policy is given the problem of full micro-batches, and its
// table is simulated with this one.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/schedule/problem.hpp>

namespace pp::schedules {

/// The work of a micro-batch, in that of a full one: its rows, and the sum of the squares of its
/// samples' rows, as scores of attention have. A micro-batch without samples has neither.
struct micro_batch_load {
  double rows = 1, squares = 1;
};

/// A problem of full micro-batches with the load of each one. An action takes
/// (all - fixed - squares) * rows + squares * load.squares, and `fixed` if there is a row: the
/// times of `all` are those of Base. Bytes between ranks are those of rows. Memory is that of full
/// micro-batches, as pipelines plan it.
///
/// needs: in squares and fixed times of the same chunks, together at most those of Base; loads of
///        a micro-batch or more, `each` for one: one for all chunks, or one for each chunk.
///        Micro-batches behind these begin with the first again, so that steps may be repeated
/// law:   with loads of 1 the times are those of Base
template <class Base>
struct uneven_problem : Base {
  Base squares, fixed;
  std::vector<micro_batch_load> loads;
  std::size_t each = 1;

  constexpr micro_batch_load const& load(int micro_batch, int chunk) const {
    std::size_t const first = static_cast<std::size_t>(micro_batch) * each;
    return loads[(first + static_cast<std::size_t>(chunk) % each) % loads.size()];
  }
  constexpr long time(action const& a) const {
    micro_batch_load const& of = load(a.micro_batch, a.chunk);
    long const whole = Base::time(a), square = squares.time(a), same = fixed.time(a);
    return rounded(double(whole - square - same) * of.rows + double(square) * of.squares +
                   (of.rows > 0 ? double(same) : 0));
  }
  constexpr long time_of_pair(action const& forward, action const& backward) const {
    long const f = time(forward), b = time(backward), longer = f > b ? f : b,
               whole = Base::time(forward), hidden = this->cost(forward.chunk).hidden,
               both = f + b - (whole > 0 ? rounded(double(hidden) * double(f) / double(whole)) : 0);
    return both > longer ? both : longer;
  }
  using Base::hop_time;
  /// That of the rows of a micro-batch, as the chunk before the boundary computes them.
  constexpr long hop_time(int from_rank, int to_rank, int boundary, int micro_batch) const {
    if (from_rank == to_rank) return 0;
    long const moved = this->transfer_time(boundary);
    return this->hop_time(from_rank, to_rank, boundary) - moved +
           rounded(double(moved) * load(micro_batch, boundary).rows);
  }

 private:
  static constexpr long rounded(double x) { return static_cast<long>(x + .5); }
};

}  // namespace pp::schedules
