// SPDX-License-Identifier: BSL-1.0
//
// A block whose warps have roles on the CPU: see hopper/roles.hpp. Each role runs until it waits,
// and then another one; copies and multiplications happen at some time between their start and what
// waits for them. All that a correct body does not depend on is chosen by a seed, and what hardware
// would not forgive is an error that says what and where:
//
//   * a copy into bytes that a multiplication may still read, or that another copy is on its way
//   to;
//   * a multiplication of bytes that a copy is on its way to, or that threads have stored without a
//     fence between the proxies;
//   * a batch of multiplications that is not begun by one, or sums that are touched under way;
//   * an arrival too many, a barrier that no fence made known, a phase that a role missed;
//   * all roles wait: which for what, and what is missing there.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pipe/backend/cuda/hopper/roles.hpp>
#include <pipe/backend/cuda/hopper/tensor_map.hpp>

#include "cuda/map_fault.hpp"

namespace pp::cuda {

struct role_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// When copies and multiplications that were started happen.
enum class lateness : unsigned char { late, at_once, random };

/// Shared memory, its barriers, and the roles, of which one runs at a time: each is a thread that
/// waits for its turn.
class role_machine {
 public:
  role_machine(lateness when, unsigned seed) : when_(when), random_(seed) {}

  void begin(void* shared, std::size_t bytes) {
    shared_ = static_cast<unsigned char*>(shared), bytes_ = bytes;
    seen_by_copies_.assign(shared_, shared_ + bytes);
    under_way_.assign(bytes, 0);
    read_later_.assign(bytes, 0);
    barriers_.clear(), copies_.clear();
  }
  unsigned address_of(void const* p) const {
    return unsigned(static_cast<unsigned char const*>(p) - shared_);
  }

  // ---- roles ----

  void run(std::vector<std::function<void()>> const& roles) {
    waits_.assign(roles.size(), {});
    is_last_.assign(roles.size(), false);
    ended_.assign(roles.size(), false);
    failure_ = nullptr;
    turn_ = -1;
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < roles.size(); ++r)
      threads.emplace_back([&, r] {
        try {
          await_turn(int(r));
          roles[r]();
        } catch (stopped const&) {
        } catch (...) {
          std::lock_guard const lock(mutex_);
          if (!failure_) failure_ = std::current_exception();
        }
        std::unique_lock lock(mutex_);
        ended_[r] = true;
        pass_on(lock);
      });
    {
      std::unique_lock lock(mutex_);
      pass_on(lock);
    }
    for (std::thread& t : threads) t.join();
    if (failure_) std::rethrow_exception(failure_);
  }
  /// Goes on when no other role can, if all is late.
  void step_last(int role) {
    is_last_[std::size_t(role)] = when_ == lateness::late;
    step(role);
    is_last_[std::size_t(role)] = false;
  }
  /// Perhaps another role goes on.
  void step(int role) {
    std::unique_lock lock(mutex_);
    pass_on(lock);
    lock.unlock();
    await_turn(role);
  }

  // ---- barriers ----

  void begin_barrier(mbarrier* b, int arrivals) {
    if (arrivals < 1) throw role_error("a barrier of no arrivals");
    barriers_[b] = {arrivals, arrivals, 0, 0, false};
  }
  void arrive(mbarrier* b, int bytes) {
    barrier& x = at(b);
    if (x.missing == 0) throw role_error("an arrival too many at " + name(b));
    x.bytes += bytes;
    --x.missing;
    complete(b);
  }
  void await_phase(int role, mbarrier* b, unsigned parity) {
    barrier const& x = at(b);
    std::uint64_t const phase = x.phase;
    if (phase % 2 == parity) waits_[std::size_t(role)] = {b, phase};
    step(role);
    if (phase % 2 == parity && x.phase > phase + 1)
      throw role_error("a phase of " + name(b) + " was missed");
    waits_[std::size_t(role)] = {};
  }

  // ---- the async proxy ----

  /// What was stored is seen by copies and multiplications.
  void fence() {
    std::copy_n(shared_, bytes_, seen_by_copies_.begin());
    for (auto& [b, x] : barriers_) x.is_known = true;
  }
  void copy_box(void* to, tensor_map const& m, int row, int column, mbarrier* done) {
    if (fault_of(m) != map_fault::none || !is_aligned(m)) throw role_error("no such map");
    unsigned const first = address_of(to);
    if (first % unsigned(std::max(128, 8 * span_of(m.pattern))) != 0)
      throw role_error("a box at " + std::to_string(first) + " is not aligned");
    if (!at(done).is_known) throw role_error("a copy to " + name(done) + ", which it does not see");
    for (unsigned i = first; i < first + unsigned(box_bytes(m)); ++i) {
      if (i >= bytes_) throw role_error("a copy beyond shared memory");
      if (read_later_[i] != 0)
        throw role_error("a copy to byte " + std::to_string(i) + ", which is still multiplied");
      if (under_way_[i] != 0)
        throw role_error("two copies to byte " + std::to_string(i) + " at once");
      if (seen_by_copies_[i] != shared_[i])
        throw role_error("a copy to byte " + std::to_string(i) + ", stored without a fence");
      under_way_[i] = 1;
      shared_[i] = seen_by_copies_[i] = 0xff;
    }
    copies_.push_back({first, m, row, column, done});
    if (when_ == lateness::at_once) land(0);
  }
  bool happens_now() { return when_ == lateness::at_once || (is_random() && random_() % 4 == 0); }
  void will_read(unsigned at, int by) {
    if (at >= bytes_) throw role_error("an operand beyond shared memory");
    read_later_[at] = std::uint16_t(read_later_[at] + by);
  }
  /// Two bytes of an operand.
  std::uint16_t read(unsigned at) const {
    for (unsigned i = at; i < at + 2; ++i) {
      if (under_way_[i] != 0)
        throw role_error("byte " + std::to_string(i) + " is multiplied before its copy is there");
      if (seen_by_copies_[i] != shared_[i])
        throw role_error("byte " + std::to_string(i) + " is multiplied, stored without a fence");
    }
    std::uint16_t x;
    std::memcpy(&x, shared_ + at, 2);
    return x;
  }

 private:
  struct stopped {};
  struct barrier {
    int arrivals = 0, missing = 0;
    long bytes = 0;  // announced, and not there
    std::uint64_t phase = 0;
    bool is_known = false;  // to the async proxy
  };
  struct copy {
    unsigned to;
    tensor_map map;
    int row, column;
    mbarrier* done;
  };
  struct wait {
    mbarrier* b = nullptr;
    std::uint64_t phase = 0;
  };

  bool is_random() const { return when_ == lateness::random; }
  std::string name(mbarrier* b) const { return "the barrier at " + std::to_string(address_of(b)); }
  barrier& at(mbarrier* b) {
    auto const found = barriers_.find(b);
    if (found == barriers_.end()) throw role_error(name(b) + " was not begun");
    return found->second;
  }
  void complete(mbarrier* b) {
    barrier& x = at(b);
    if (x.missing != 0 || x.bytes != 0) return;
    ++x.phase;
    x.missing = x.arrivals;
  }
  void land(std::size_t i) {
    copy const c = copies_[i];
    copies_.erase(copies_.begin() + std::ptrdiff_t(i));
    for (int r = 0; r < c.map.box_rows; ++r)
      for (int k = 0; k < c.map.box_columns; ++k) {
        extent const row = c.row + r, column = c.column + k;
        unsigned const from_box = unsigned(r * c.map.box_columns + k) * 2,
                       to = swizzled(c.map.pattern, c.to + from_box);
        bool const is_inside =
            row >= 0 && row < c.map.rows && column >= 0 && column < c.map.columns;
        if (is_inside)
          std::memcpy(
              shared_ + to,
              static_cast<unsigned char const*>(c.map.base) + row * c.map.pitch + column * 2, 2);
        else
          std::memset(shared_ + to, 0, 2);
      }
    for (unsigned k = c.to; k < c.to + unsigned(box_bytes(c.map)); ++k) {
      under_way_[k] = 0;
      seen_by_copies_[k] = shared_[k];
    }
    at(c.done).bytes -= box_bytes(c.map);
    complete(c.done);
  }

  bool may_run(std::size_t r) {
    wait const& w = waits_[r];
    return !ended_[r] && (w.b == nullptr || at(w.b).phase > w.phase);
  }
  /// Whose turn it is; copies land when the seed says so, or when nothing else can happen.
  void pass_on(std::unique_lock<std::mutex>&) {
    for (;;) {
      std::vector<int> able;
      bool all_ended = true;
      for (std::size_t r = 0; r < ended_.size(); ++r) {
        if (may_run(r) || (failure_ && !ended_[r])) able.push_back(int(r));
        all_ended = all_ended && ended_[r];
      }
      if (all_ended) {
        turn_ = -1;
        if (!copies_.empty() && !failure_)
          failure_ = std::make_exception_ptr(role_error("a block ends before its copies"));
        return;
      }
      bool const lands =
          !failure_ && !copies_.empty() && (able.empty() || (is_random() && random_() % 4 == 0));
      if (lands) {
        land(random_() % copies_.size());
        continue;
      }
      auto const is_last = [&](int r) { return is_last_[std::size_t(r)] != 0; };
      if (!std::all_of(able.begin(), able.end(), is_last)) std::erase_if(able, is_last);
      if (able.empty()) {
        failure_ = std::make_exception_ptr(role_error(deadlock()));
        continue;
      }
      turn_ = able[random_() % able.size()];
      changed_.notify_all();
      return;
    }
  }
  std::string deadlock() {
    std::string all = "deadlock:";
    for (std::size_t r = 0; r < waits_.size(); ++r) {
      if (ended_[r]) continue;
      barrier const& x = at(waits_[r].b);
      all += " role " + std::to_string(r) + " waits for phase " + std::to_string(waits_[r].phase) +
             " of " + name(waits_[r].b) + ", where " + std::to_string(x.missing) + " of " +
             std::to_string(x.arrivals) + " arrivals and " + std::to_string(x.bytes) +
             " bytes are missing;";
    }
    return all;
  }
  void await_turn(int role) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == role; });
    if (failure_) throw stopped{};
  }

  lateness when_;
  std::mt19937 random_;
  unsigned char* shared_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<unsigned char> seen_by_copies_, under_way_;
  std::vector<std::uint16_t> read_later_;
  std::map<mbarrier*, barrier> barriers_;
  std::vector<copy> copies_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = -1;
  std::vector<wait> waits_;
  std::vector<char> ended_, is_last_;
  std::exception_ptr failure_;
};

/// What a role's code sees of the machine.
template <class Body>
class host_role {
 public:
  using state = typename Body::state;
  using shared_type = typename Body::shared;
  host_role(role_machine& machine, shared_type& shared, extent index, int role)
      : machine_(machine), shared_(shared), index_(index), role_(role) {}

  extent position() const { return index_; }
  shared_type& shared() const { return shared_; }
  unsigned address_of(void const* p) const { return machine_.address_of(p); }
  void arrive(mbarrier* b, int bytes) {
    machine_.step(role_);
    machine_.arrive(b, bytes);
  }
  void await_phase(mbarrier* b, unsigned parity) { machine_.await_phase(role_, b, parity); }
  void fence_async_proxy() { machine_.fence(); }
  void copy_box(void* to, tensor_map const& m, int row, int column, mbarrier* done) {
    machine_.step(role_);
    machine_.copy_box(to, m, row, column, done);
  }

 protected:
  role_machine& machine_;
  shared_type& shared_;
  extent index_;
  int role_;
};

/// A warpgroup: its threads run one after the other, and wait together.
template <class Body>
class host_consumer : public host_role<Body> {
  using base = host_role<Body>;

 public:
  using typename base::state;
  host_consumer(role_machine& machine, typename base::shared_type& shared, extent index, int number)
      : base(machine, shared, index, 1 + number), number_(number), states_(warpgroup_size) {
    std::memset(static_cast<void*>(states_.data()), 0xff, sizeof(state) * states_.size());
  }
  int number() const { return number_; }
  template <class F>
  void phase(F f) {
    part(f);
  }
  template <class F>
  void part(F f) {
    for (int t = 0; t < warpgroup_size; ++t) f(t, states_[std::size_t(t)]);
  }

  // ---- multiplications ----

  void begin_multiplications() { has_begun_ = true; }
  template <operand_format F, major A, major B, int Count, class Access>
  void multiply_later(Access access, std::uint64_t a, std::uint64_t b, bool adds) {
    if (!has_begun_) throw role_error("multiplications that were not begun");
    this->machine_.step(this->role_);
    multiplication m{F, A, B, Count, decode(a), decode(b), adds, committed_, {}};
    for (int t = 0; t < warpgroup_size; ++t) {
      float* const sums = access(states_[std::size_t(t)]);
      m.sums.push_back(sums);
      if (!is_under_way(sums)) hidden_[sums].assign(sums, sums + Count);
      require_untouched(sums, true);
      std::memset(static_cast<void*>(sums), 0xff, sizeof(float) * Count);
      ++uses_[sums];
    }
    each_place(m, [&](unsigned at) { this->machine_.will_read(at, 1); });
    later_.push_back(std::move(m));
    while (!later_.empty() && this->machine_.happens_now()) multiply_first();
  }
  void commit_multiplications() { ++committed_; }
  void await_multiplications(int pending) {
    this->machine_.step_last(this->role_);
    while (!later_.empty() && later_.front().group < committed_ - pending) multiply_first();
    for (auto const& [sums, n] : uses_) {
      if (n != 0 && pending == 0) throw role_error("multiplications that were not committed");
      if (n != 0 || !done_.contains(sums)) continue;
      require_untouched(sums, false);
      std::vector<float> const& h = hidden_.at(sums);
      std::copy(h.begin(), h.end(), sums);
    }
    std::erase_if(uses_, [](auto const& x) { return x.second == 0; });
    done_.clear();
    has_begun_ = false;
  }
  /// At the end of the role.
  void require_done() const {
    if (!later_.empty() || !uses_.empty()) throw role_error("a role ends before its products");
  }

 private:
  struct multiplication {
    operand_format format;
    major a_along, b_along;
    int count;
    wgmma_operand a, b;
    bool adds;
    int group;
    std::vector<float*> sums;
  };
  bool is_under_way(float* sums) const { return uses_.contains(sums); }
  void require_untouched(float* sums, bool when_started) const {
    if (when_started && !is_under_way(sums)) return;
    for (std::size_t i = 0; i < hidden_.at(sums).size(); ++i)
      if (math::bits(sums[i]) != 0xffffffffu)
        throw role_error("sums are touched while they are added");
  }
  template <class F>
  static void each_place(multiplication const& m, F f) {
    for (int k = 0; k < wgmma::inner; ++k) {
      for (int r = 0; r < wgmma::rows; ++r) f(place_of(m.a, m.a_along, r, k));
      for (int c = 0; c < 2 * m.count; ++c) f(place_of(m.b, m.b_along, c, k));
    }
  }
  float number(operand_format f, unsigned at) const {
    std::uint16_t const bits = this->machine_.read(at);
    return f == operand_format::bf16 ? detail::float_from_bf16(bits) : detail::float_from_f16(bits);
  }
  void multiply_first() {
    multiplication const m = std::move(later_.front());
    later_.erase(later_.begin());
    std::vector<float> a(std::size_t(wgmma::rows * wgmma::inner)),
        b(std::size_t(2 * m.count * wgmma::inner));
    for (int k = 0; k < wgmma::inner; ++k) {
      for (int r = 0; r < wgmma::rows; ++r)
        a[std::size_t(r * wgmma::inner + k)] = number(m.format, place_of(m.a, m.a_along, r, k));
      for (int c = 0; c < 2 * m.count; ++c)
        b[std::size_t(c * wgmma::inner + k)] = number(m.format, place_of(m.b, m.b_along, c, k));
    }
    each_place(m, [&](unsigned at) { this->machine_.will_read(at, -1); });
    for (int t = 0; t < warpgroup_size; ++t) {
      float* const sums = m.sums[std::size_t(t)];
      std::vector<float>& to = hidden_.at(sums);
      for (int i = 0; i < m.count; ++i) {
        tile_place const p = place_in_wgmma(t, i);
        float sum = 0;
        for (int k = 0; k < wgmma::inner; ++k)
          sum += a[std::size_t(p.row * wgmma::inner + k)] *
                 b[std::size_t(p.column * wgmma::inner + k)];
        to[std::size_t(i)] = (m.adds ? to[std::size_t(i)] : 0.0f) + sum;
      }
      if (--uses_.at(sums) == 0) done_[sums] = true;
    }
  }

  int number_, committed_ = 0;
  bool has_begun_ = false;
  std::vector<state> states_;
  std::vector<multiplication> later_;
  std::map<float*, std::vector<float>> hidden_;  // the sums that nobody may see
  std::map<float*, int> uses_;                   // multiplications under way
  std::map<float*, bool> done_;
};

/// needs: as host_block
template <class Body>
class host_role_block {
 public:
  using body = Body;
  using state = typename Body::state;
  using shared_type = typename Body::shared;

  explicit host_role_block(lateness when = lateness::late, unsigned seed = 1)
      : machine_(when, seed), shared_(std::make_unique<shared_type>()) {}
  void begin(extent index) {
    index_ = index;
    std::memset(static_cast<void*>(shared_.get()), 0xff, sizeof(shared_type));
    machine_.begin(shared_.get(), sizeof(shared_type));
  }
  extent position() const { return index_; }
  shared_type& shared() const { return *shared_; }
  unsigned address_of(void const* p) const { return machine_.address_of(p); }

  template <class F>
  void phase(F f) {
    state nothing_yet;
    for (int t = 0; t < Body::threads; ++t) f(t, nothing_yet);
  }
  void begin_barrier(mbarrier* b, int arrivals) { machine_.begin_barrier(b, arrivals); }
  void fence_async_proxy() { machine_.fence(); }

  template <class Produce, class Consume>
  void split_roles(Produce produce, Consume consume) {
    std::vector<std::function<void()>> roles{[&] {
      host_role<Body> producer(machine_, *shared_, index_, 0);
      produce(producer);
    }};
    for (int c = 0; c < Body::consumers; ++c)
      roles.push_back([&, c] {
        host_consumer<Body> consumer(machine_, *shared_, index_, c);
        consume(consumer);
        consumer.require_done();
      });
    machine_.run(roles);
  }

 private:
  role_machine machine_;
  std::unique_ptr<shared_type> shared_;
  extent index_ = 0;
};

}  // namespace pp::cuda
