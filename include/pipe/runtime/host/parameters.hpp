// SPDX-License-Identifier: BSL-1.0
//
// What the runtime does with parameters between the last gradient and the next forward: norms,
// gradients of shared parameters, the optimizer's update, averages, and the copies that must
// follow. Each rank does it for its own chunks, its threads sharing the work: which thread does
// what changes no bit.
#pragma once

#include <cstring>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/runtime/host/backend_calls.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/host/team.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

template <class T>
class parameter_work {
 public:
  PIPE_COLD parameter_work(pipeline_description const& d, backend_calls<T> const& calls)
      : d_(d), calls_(calls), memory_(d.ranks) {}

  /// A rank's arena, once it is there.
  PIPE_COLD void set_memory(int rank, char* memory) {
    memory_[rank] = memory;
    gradient_block* to = blocks_of_rank(rank);
    for_chunks_of(rank, [&](chunk_description const& c) {
      for (int i = 0; i < c.parameter_count; ++i)
        for (long k = 0; k < blocks_of(c.parameters[i]); ++k)
          *to++ = gradient_block{&c, &c.parameters[i], k * gradient_block::most_elements};
    });
  }

  /// The norm of all gradients before clipping.
  /// law: sums in parameter order: the same bits for every partition
  double norm(job const& j) const { return norm_of(unclamped) * j.gradient_scale; }

  /// Squared norms of the gradients of rank r, which are then clipped by value if the job says so.
  /// law: sums over blocks of gradient_block::most_elements elements, then over a parameter's
  ///      blocks in order
  void measure(int r, team& all, job const& j) {
    gradient_block* const blocks = blocks_of_rank(r);
    long const count = d_.rank[r].block_count;
    bool const clips = j.updates && j.clip_value > 0;
    all.run([&](int part) {
      host::share const own = host::share_of(count, 1, part, all.size());
      for (long i = own.begin; i < own.end; ++i) {
        gradient_block& b = blocks[i];
        long const left = b.of->elements() - b.begin;
        long const n = left < gradient_block::most_elements ? left : gradient_block::most_elements;
        T* const g = at(*b.chunk, b.chunk->gradients, *b.of) + b.begin;
        b.square = calls_.sum_of_squares(n, g);
        if (!clips) continue;
        calls_.clamp(n, g, T(j.clip_value / j.gradient_scale));
        b.clamped_square = calls_.sum_of_squares(n, g);
      }
    });
    for (gradient_block const* b = blocks; b < blocks + count; ++b) {
      double* const square = squares(*b->chunk) + 2 * (b->of - b->chunk->parameters);
      if (b->begin == 0) square[unclamped] = square[clamped] = 0;
      square[unclamped] += b->square;
      if (clips) square[clamped] += b->clamped_square;
    }
  }

  /// One step of the optimizer on the parameters of rank r, all ranks having measured.
  void update(int r, team& all, job const& j) {
    double const whole = norm(j),
                 left = j.clip_value > 0 ? norm_of(clamped) * j.gradient_scale : whole;
    double const clip = j.clip_norm > 0 && left > j.clip_norm ? j.clip_norm / (left + 1e-6) : 1;
    double const scale = clip * j.gradient_scale;
    all.run([&](int part) {
      for_chunks_of(
          r, [&](chunk_description const& c) { update_part(r, c, j, scale, part, all.size()); });
    });
    if (d_.averages)
      all.run([&](int part) {
        for_chunks_of(r, [&](chunk_description const& c) {
          renew_averages(c, j, elements_of(c.trained_bytes / long(sizeof(T)), part, all.size()));
        });
      });
    renew_transposed(r, all);
  }

  /// law: the gradient of a shared parameter is that of its first place, plus the others in the
  ///      order of the model
  void add_tied_gradients(int r, team& all) {
    for (int i = 0; i < d_.tie_count; ++i) {
      tie const& t = d_.ties[i];
      chunk_description const &place = d_.chunk[t.chunk], &owner = d_.chunk[t.owner_chunk];
      if (!t.place.trained || owner.rank != r) continue;
      T* const to = at(owner, owner.gradients, t.owner);
      T const* const from = at(place, place.gradients, t.place);
      all.run([&](int part) {
        host::share const own = elements_of(t.owner.elements(), part, all.size());
        calls_.add(own.size(), to + own.begin, from + own.begin);
      });
    }
  }
  /// Copies shared parameters from where they were updated. All ranks have finished that run.
  void renew_tied(int r, team& all) {
    for (int i = 0; i < d_.tie_count; ++i) {
      tie const& t = d_.ties[i];
      chunk_description const &place = d_.chunk[t.chunk], &owner = d_.chunk[t.owner_chunk];
      if (place.rank != r) continue;
      T* const to = at(place, place.values, t.place);
      T const* const from = at(owner, owner.values, t.owner);
      all.run([&](int part) {
        host::share const own = rows_of(t.place, part, all.size());
        std::memcpy(to + own.begin * t.place.columns, from + own.begin * t.place.columns,
                    sizeof(T) * std::size_t(own.size() * t.place.columns));
        transpose_rows(place, t.place, own);
      });
    }
  }
  /// The transposed copies of the parameters of rank r.
  void renew_transposed(int r, team& all) {
    all.run([&](int part) {
      for_chunks_of(r, [&](chunk_description const& c) {
        for (int i = 0; i < c.parameter_count; ++i)
          transpose_rows(c, c.parameters[i], rows_of(c.parameters[i], part, all.size()));
      });
    });
  }

 private:
  static constexpr long line = host::columns_step<T>;
  enum which : int { unclamped, clamped };

  gradient_block* blocks_of_rank(int r) const {
    return reinterpret_cast<gradient_block*>(memory_[r] + d_.rank[r].blocks);
  }
  /// Two for each of the chunk's parameters: its gradient's squared norm, and the same after
  /// clipping by value.
  double* squares(chunk_description const& c) const {
    return reinterpret_cast<double*>(memory_[c.rank] + c.norms);
  }

  static host::share elements_of(long n, int part, int parts) {
    return host::share_of(n, line, part, parts);
  }
  static host::share rows_of(parameter_place const& p, int part, int parts) {
    return host::share_of(p.rows, line, part, parts);
  }
  double norm_of(which squared) const {
    double sum = 0;
    for (int c = 0; c < d_.chunks; ++c)
      for (int i = 0; i < d_.chunk[c].parameter_count; ++i)
        sum += squares(d_.chunk[c])[2 * i + squared];
    return libm::sqrt(sum);
  }

  T* at(chunk_description const& c, long region, long element) const {
    return reinterpret_cast<T*>(memory_[c.rank] + region) + element;
  }
  T* at(chunk_description const& c, long region, parameter_place const& p) const {
    return at(c, region + p.offset, 0);
  }
  template <class Use>
  void for_chunks_of(int r, Use use) {
    for (int c = 0; c < d_.chunks; ++c)
      if (d_.chunk[c].rank == r) use(d_.chunk[c]);
  }

  /// Runs of single elements are shared out among the parts, whole parameters taken in turns.
  void update_part(int r, chunk_description const& c, job const& j, double scale, int part,
                   int parts) {
    T* const workspace =
        reinterpret_cast<T*>(memory_[r] + d_.rank[r].workspace + part * d_.workspace_bytes);
    int turn = 0;
    for (int i = 0; i < c.update_count; ++i) {
      update_range const& u = c.updates[i];
      if (u.whole && turn++ % parts != part) continue;
      calls_.update(calls_.optimizer,
                    update_request<T>{
                        u, at(c, c.values, u.begin), at(c, c.gradients, u.begin),
                        at(c, c.state, u.state), workspace, j.step, j.learning_rate, scale,
                        u.whole ? host::everything : elements_of(u.shape.elements(), part, parts)});
    }
  }

  /// average += (1 - decay) (parameter - average), at the first step average = parameter.
  void renew_averages(chunk_description const& c, job const& j, host::share own) {
    T* const average = at(c, c.average, own.begin);
    T const* const values = at(c, c.values, own.begin);
    if (j.step == 1)
      std::memcpy(average, values, sizeof(T) * std::size_t(own.size()));
    else
      calls_.approach(own.size(), average, values, T(1 - d_.average_decay));
  }

  void transpose_rows(chunk_description const& c, parameter_place const& p, host::share rows) {
    if (p.transposed < 0) return;
    calls_.transpose(at(c, c.values, p) + rows.begin * p.columns, rows.size(), p.columns, p.columns,
                     at(c, c.transposed + p.transposed, rows.begin), p.rows);
  }

  pipeline_description const& d_;
  backend_calls<T> const& calls_;
  heap_array<char*> memory_;  // by rank
};

}  // namespace pp
PIPE_OPTIMIZED_END
