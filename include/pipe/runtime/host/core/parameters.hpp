// SPDX-License-Identifier: BSL-1.0
//
// The operations of runtime/step_end.hpp on the host: norms, gradients of shared parameters, the
// optimizer's update, averages, and copies of parameters. Each rank executes them for its own
// chunks, divided among its threads; the division changes no bit of the result.
#pragma once

#include <cstring>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/optim/clip.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/accumulation_sums.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/replica_parts.hpp>
#include <pipe/runtime/host/core/team.hpp>
#include <pipe/runtime/host/core/weight_versions.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/transfers.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The end-of-step operations of all ranks. Methods take a rank r and its team, and are called on
/// that rank's thread.
///
/// needs: set_memory() of every local rank before anything else
/// law:   a method waits for another rank only in the `share` function that it is given
template <class T, transport Transport>
class parameter_operations {
 public:
  [[gnu::cold]] parameter_operations(pipeline_description const& d, backend_calls<T> const& calls,
                                     Transport& transport)
      : d_(d), calls_(calls), transport_(transport), memory_(d.ranks), shards_(d.ranks),
        versions_(d) {}

  /// Registers a rank's arena, and lists the blocks of the rank's gradients and the ranges that it
  /// updates.
  [[gnu::cold]] void set_memory(int rank, char* memory, [[maybe_unused]] process_place const& place,
                                [[maybe_unused]] arena_end const& end) {
    memory_[rank] = memory;
    versions_.set_memory(rank, memory);
    transport_.set_memory(rank, memory);
    // rank_description::block_count counts the same blocks.
    gradient_block* to = blocks_of_rank(rank);
    for_chunks_of(rank, [&](chunk_description const& c) {
      for (parameter_place const& p : c.parameters)
        for (long k = 0; k < blocks_of(p); ++k)
          *to++ = gradient_block{&c, &p, k * gradient_block::most_elements};
    });
    int const count = int(d_.rank[rank].block_count);
    if constexpr (replica_transport<Transport>)
      shards_[rank].assemble(d_, rank, memory, place, end, blocks_of_rank(rank), count);
    else
      shards_[rank].assemble(d_, rank, memory, blocks_of_rank(rank), count);
  }

  /// Sets the sum of each loss's terms of a micro-batch, [loss_rows] of all losses, on the rank
  /// that runs the last chunk for it.
  void set_loss(job const& j, int micro_batch, double const* terms) {
    chunk_holder const& h = d_.holder[d_.holder_of(d_.chunks - 1, micro_batch)];
    double* const sums =
        loss_sums(d_.is_copy(h) ? h.rank : last_rank()) + loss_place(d_, micro_batch);
    for (int loss = 0; loss < d_.losses; ++loss) {
      double sum = 0;
      int const end = end_of_rows(d_, j, loss, micro_batch);
      for (int row = first_row_of(d_, j, loss); row < end; ++row) sum += terms[row];
      sums[loss] = sum;
    }
  }
  /// Adds up the losses of all micro-batches in place of those of the first, if r is the last
  /// chunk's rank.
  ///
  /// law: sums are in micro-batch order, so every partition gives the same bits
  waited add_up_losses(int r, job const& j, accumulation_sums<T, Transport>& accumulated) {
    if (r != last_rank()) return waited::done;
    double* const all = loss_sums(last_rank());
    for (int loss = 0; loss < d_.losses; ++loss) {
      double sum = 0;
      for (int mb = 0; samples_in(d_, j, mb) > 0; ++mb) sum += all[loss_place(d_, mb) + loss];
      all[loss] = sum;
    }
    int const holders = d_.chunk[d_.chunks - 1].holders;
    return accumulated.add_up_losses(all, all + holders * losses_of_holder(d_));
  }
  /// Distributes the loss and, in training, the squared norms to all ranks. Calls share(transfer)
  /// for all transfers, on all ranks in the same order.
  template <class Share>
  void gather(job const& j, Share const& share) {
    for (int reader = 0; reader < d_.ranks; ++reader) {
      share(loss_of(d_, reader));
      for (int c = 0; c < d_.chunks && j.adds_gradients(); ++c) share(norms_of(d_, c, reader));
    }
  }

  /// Norm and clipping factor of the gradients of the whole pipeline, from the norms as rank
  /// `reader` has them.
  ///
  /// law: sums are in parameter order, so every partition gives the same bits
  detail::gradient_outcome judge(int reader, job const& j) const {
    double const whole = sum_of(unclamped, reader);
    bool const clamps = j.update.applies && j.update.clip_value > 0;
    return detail::outcome_of(whole, clamps ? sum_of(clamped, reader) : whole,
                              j.update.gradient_scale, j.update.clip_norm);
  }
  /// Whether norm and loss are finite.
  bool is_sound(int reader, job const& j, gradient_outcome const& o) const {
    return libm::isfinite(o.norm) && libm::isfinite(j.loss.further.sum_of(losses(reader, j).items));
  }
  /// The losses of the mini-batch, from the sums as rank `reader` has them.
  loss_values losses(int reader, job const& j) const {
    return j.loss.means_of(reinterpret_cast<double const*>(transport_.at(loss_of(d_, reader))));
  }

  /// Computes the squared norms of rank r's gradients, and clips the gradients by value if the job
  /// asks for this.
  ///
  /// law: a parameter's sum is over blocks of gradient_block::most_elements elements, in order
  waited measure(int r, team& all, job const& j, accumulation_sums<T, Transport>& accumulated) {
    rank_shards_of<T, Transport>& shards = shards_[r];
    gradient_block* const blocks = blocks_of_rank(r);
    long const count = d_.rank[r].block_count;
    bool const clips = j.update.applies && j.update.clip_value > 0;
    all.run([&](int part) {
      host::part_range const own = host::part_of(count, 1, part, all.size());
      for (long i = own.begin; i < own.end; ++i) {
        if (!shards.measures(i)) continue;
        gradient_block& b = blocks[i];
        long const left = b.of->elements() - b.begin;
        long const n = left < gradient_block::most_elements ? left : gradient_block::most_elements;
        T* const g = shards.gradient_of(i);
        if (b.of->is_buffer) {  // not in the norm, but NaN and infinity must reject the step
          b.square = b.clamped_square = 0 * calls_.sum_of_squares(n, g);
          continue;
        }
        b.square = calls_.sum_of_squares(n, g);
        if (!clips) continue;
        // Stored gradients are not scaled yet, so the bound is divided by the scale.
        calls_.clamp(n, g, T(j.update.clip_value / j.update.gradient_scale));
        b.clamped_square = calls_.sum_of_squares(n, g);
      }
    });
    shards.pack(blocks);
    waited const w =
        accumulated.gather([&](int replica, long i) { return shards.squares_of(replica, i); });
    shards.unpack(blocks);
    for (gradient_block const* b = blocks; b < blocks + count; ++b) {
      // One thread adds the sums of blocks, in order, so that bits do not depend on the number of
      // threads.
      double* const square = squares(*b->chunk) + 2 * (b->of - b->chunk->parameters.begin());
      if (b->begin == 0) square[unclamped] = square[clamped] = 0;
      square[unclamped] += b->square;
      if (clips) square[clamped] += b->clamped_square;
    }
    return w;
  }

  /// Optimizer step on the parameters of rank r that are updated here. `gradient_scale`:
  /// gradient_outcome::factor.
  ///
  /// needs: all ranks have measured
  void update(int r, team& all, job const& j, double gradient_scale) {
    all.run([&](int part) {
      for_chunks_of(r, [&](chunk_description const& c) {
        update_part(r, c, j, gradient_scale, part, all.size());
      });
    });
  }
  /// With ZeRO: gives the other replicas the parameters of rank r that this replica has updated.
  waited share(int r, accumulation_sums<T, Transport>& accumulated) {
    return accumulated.gather(
        [&](int replica, long i) { return shards_[r].values_of(replica, i); });
  }
  /// Updates the buffers of rank r (running statistics) from their sums over the mini-batch and
  /// over the mini-batches accumulated before it.
  void commit(int r, job const& j) {
    double const samples = double(j.update.samples);
    for_chunks_of(r, [&](chunk_description const& c) {
      for (parameter_place const& p : c.parameters) {
        if (!p.is_committed()) continue;
        T* const to = reinterpret_cast<T*>(versions_.memory(c) + c.buffers + p.offset);
        T const* const sum = at(c, c.sums, p);
        // The sums of a variance follow the sums of its mean.
        T const* const of_mean = sum - (p.commit.is_variance() ? padded<T>(p.elements()) : 0);
        for (long k = 0; k < p.elements(); ++k)
          to[k] = committed(p.commit, to[k], sum[k], samples, of_mean[k]);
      }
    });
  }
  /// Updates the averages of rank r's trained parameters.
  void average(int r, team& all, job const& j) {
    all.run([&](int part) {
      for_chunks_of(r, [&](chunk_description const& c) {
        renew_averages(c, j, elements_of(c.sizes.trained / long(sizeof(T)), part, all.size()));
      });
    });
  }

  /// Adds the gradients of a shared parameter's later places to that of its first place.
  ///
  /// law: sums are in the order of the model
  template <class Share>
  void sum_ties(int r, team& all, Share const& share) {
    for (tie const& t : d_.ties) {
      // Places that are not trained have no gradient.
      if (!t.place.trained) continue;
      chunk_description const& owner = d_.chunk[t.owner_chunk];
      transfer const x = gradient_of<T>(d_, t);
      share(x);
      if (owner.rank != r) continue;
      T* const to = at(owner, owner.gradients, t.owner);
      T const* const from = reinterpret_cast<T const*>(transport_.at(x));
      all.run([&](int part) {
        host::part_range const own = elements_of(t.owner.elements(), part, all.size());
        calls_.add(own.size(), to + own.begin, from + own.begin);
      });
    }
  }
  /// Copies shared parameters, of several versions the newest, from their first place to the later
  /// ones, and renews the transposed copies there.
  template <class Share>
  void copy_ties(int r, team& all, Share const& share) {
    for (tie const& t : d_.ties) {
      chunk_description const &place = d_.chunk[t.chunk], &owner = d_.chunk[t.owner_chunk];
      transfer x = values_of<T>(d_, t);
      // The newest version of another rank is read only where that rank's update has been waited
      // for.
      if (place.rank == r || owner.rank == r) x.from += versions_.newest(owner);
      if (place.rank == r) x.to += versions_.newest(place);
      share(x);
      if (place.rank != r) continue;
      T* const to = reinterpret_cast<T*>(versions_.memory(place) + place.values + t.place.offset);
      T const* const from = reinterpret_cast<T const*>(transport_.at(x));
      all.run([&](int part) {
        host::part_range const own = calls_.rows_of(t.place, part, all.size());
        // A transport that copies has received the values at their place already, in share().
        if (from != to)
          std::memcpy(to + own.begin * t.place.columns, from + own.begin * t.place.columns,
                      sizeof(T) * std::size_t(own.size() * t.place.columns));
        transpose_rows(versions_.memory(place), place, t.place, own);
      });
    }
  }
  /// Gives copies of chunks the weights of their owners, and renews the transposed copies there.
  ///
  /// needs: the owners have renewed their own transposed copies
  template <class Share>
  void share_weights(int r, team& all, Share const& share) {
    for_each_copy(d_, [&](chunk_description const& c, chunk_holder const& h) {
      share(weights_of(d_, c, h));
      if (h.rank == r) transpose_chunk(memory_[r] + d_.weights_shift(h), c, all);
    });
  }
  /// Renews the transposed copies of rank r's parameters.
  void transpose(int r, team& all) {
    for_chunks_of(
        r, [&](chunk_description const& c) { transpose_chunk(versions_.memory(c), c, all); });
  }

  rank_shards_of<T, Transport> const& shards(int r) const { return shards_[r]; }

  /// The squared norms of a chunk's gradients: see measure().
  double const* squares_of(int chunk) const { return squares(d_.chunk[chunk]); }
  weight_versions<T>& versions() { return versions_; }
  /// Completes older versions of rank r's weights, in which only trained parameters were written.
  void complete_versions(int r, team& all) {
    for_chunks_of(r, [&](chunk_description const& c) {
      versions_.copy_untrained(c);
      for (int slot = 1; slot < c.versions.slots; ++slot)
        transpose_chunk(memory_[r] + c.shift_of(slot), c, all);
    });
  }

  /// Predicts a chunk's weights after `ahead` more updates, w + ahead (w - w'), from the newest
  /// version w and the version w' before it, in whose slot the prediction is. Returns false if
  /// there was no update in this run.
  bool predict(chunk_description const& c, team& all, long ahead) {
    long const was = versions_.exchange_ahead(c, ahead);
    if (was == 0 || was == ahead) return was != 0;
    char *const to = versions_.memory_before(c), *const from = versions_.memory(c);
    all.run([&](int part) {
      auto const own = elements_of(c.sizes.parameters / long(sizeof(T)), part, all.size());
      // The slot has w + was (w - w').
      calls_.approach(own.size(), reinterpret_cast<T*>(to + c.values) + own.begin,
                      reinterpret_cast<T const*>(from + c.values) + own.begin,
                      T(1 - double(ahead) / double(was)));
    });
    std::memcpy(to + c.buffers, from + c.buffers, std::size_t(c.sizes.buffers));
    transpose_chunk(to, c, all);
    return true;
  }

 private:
  /// Elements of a cache line: parts begin at multiples, so no two threads write to one.
  static constexpr long line = host::column_alignment<T>;
  /// Columns of squares(): before and after clipping by value.
  enum which : int { unclamped, clamped };

  int last_rank() const { return d_.chunk[d_.chunks - 1].rank; }
  /// On a rank that holds the last chunk: the sums of each loss's terms by micro-batch, see
  /// loss_place. The owner's first sums become those of the mini-batch, and its partial sums over
  /// accumulations follow.
  double* loss_sums(int rank) const {
    return reinterpret_cast<double*>(memory_[rank] + d_.rank[rank].losses);
  }
  /// The list of a rank's gradient blocks, in its arena.
  gradient_block* blocks_of_rank(int r) const {
    return reinterpret_cast<gradient_block*>(memory_[r] + d_.rank[r].blocks);
  }
  /// Squared norms of a chunk's gradients.
  ///
  /// shape: [parameters, 2]: before clipping by value, after it
  double* squares(chunk_description const& c) const {
    return reinterpret_cast<double*>(memory_[c.rank] + c.norms);
  }

  /// The elements of one thread, cut at cache lines.
  static host::part_range elements_of(long n, int part, int parts) {
    return host::part_of(n, line, part, parts);
  }
  /// Sum of the squared norms of all chunks' gradients, in parameter order.
  double sum_of(which squared, int reader) const {
    double sum = 0;
    for (int c = 0; c < d_.chunks; ++c) {
      double const* const squares =
          reinterpret_cast<double const*>(transport_.at(norms_of(d_, c, reader)));
      for (int i = 0; i < d_.chunk[c].parameters.count; ++i) sum += squares[2 * i + squared];
    }
    return sum;
  }

  /// An address in a region of a chunk: of an element, or of a parameter.
  T* at(chunk_description const& c, long region, long element) const {
    return reinterpret_cast<T*>(memory_[c.rank] + region) + element;
  }
  T* at(chunk_description const& c, long region, parameter_place const& p) const {
    return at(c, region + p.offset, 0);
  }
  /// use(chunk) for the chunks of rank r, in the order of the model.
  template <class Use>
  void for_chunks_of(int r, Use use) {
    for (int c = 0; c < d_.chunks; ++c)
      if (d_.chunk[c].rank == r) use(d_.chunk[c]);
  }

  /// Makes the updates of thread number `part`. Element-wise updates are divided by elements, whole
  /// parameters are assigned to threads in turn.
  void update_part(int r, chunk_description const& c, job const& j, double scale, int part,
                   int parts) {
    T* const workspace =
        reinterpret_cast<T*>(memory_[r] + d_.rank[r].workspace + part * d_.workspace_bytes);
    int whole = 0;
    for (owned_update<T> const& u : shards_[r].updates_of(int(&c - d_.chunk))) {
      // One thread updates all of a whole parameter.
      if (u.of.whole && whole++ % parts != part) continue;
      update_request<T> request{
          u.of,
          u.values,
          u.gradients,
          u.state,
          workspace,
          j.step,
          j.update.learning_rate,
          scale,
          u.of.whole ? host::everything : elements_of(u.of.shape.elements(), part, parts)};
      versions_.update(c, calls_, request);
    }
  }
  /// average += (1 - decay) (parameter - average); in the first step average = parameter.
  ///
  /// needs: the update of these parameters is done
  void renew_averages(chunk_description const& c, job const& j, host::part_range own) {
    T* const average = at(c, c.average, own.begin);
    T const* const values = reinterpret_cast<T*>(versions_.memory(c) + c.values) + own.begin;
    if (j.step == 1)
      std::memcpy(average, values, sizeof(T) * std::size_t(own.size()));
    else
      calls_.approach(own.size(), average, values, T(1 - d_.average_decay));
  }

  /// Renews the transposed copies of a chunk's parameters. memory: the address to which the chunk's
  /// offsets are added
  void transpose_chunk(char* memory, chunk_description const& c, team& all) {
    all.run([&](int part) {
      for (parameter_place const& p : c.parameters)
        transpose_rows(memory, c, p, calls_.rows_of(p, part, all.size()));
    });
  }
  /// Renews some rows of a parameter's copies, if it has any: of 16 bits, and transposed.
  void transpose_rows(char* memory, chunk_description const& c, parameter_place const& p,
                      host::part_range rows) {
    if (d_.zero > 2 && is_divided(c, p)) return;
    T const* const values = reinterpret_cast<T*>(memory + c.values + p.offset);
    if (calls_.narrow != nullptr && !p.is_buffer)
      calls_.copy_rows(p, rows, values,
                       memory + c.copies + p.offset / long(sizeof(T)) * calls_.value_bytes);
    if (p.transposed >= 0)
      calls_.transpose_rows(p, rows, values, memory + c.transposed + p.transposed);
  }

  pipeline_description const& d_;
  backend_calls<T> const& calls_;
  Transport& transport_;
  /// The start of a rank's arena; null for a rank of another process.
  heap_array<char*> memory_;  // by rank
  heap_array<rank_shards_of<T, Transport>> shards_;
  weight_versions<T> versions_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
