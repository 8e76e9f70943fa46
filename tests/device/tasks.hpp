// SPDX-License-Identifier: BSL-1.0
//
// The streams, events and graphs of a device that is a CPU. What is put on a stream is done when it
// is waited for, in an order that events allow and a program must not rely on: a wait that is
// missing shows as wrong numbers. What is put on a stream under capture becomes a node of a graph,
// which is run in any order that its edges allow.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace fake_gpu {

enum class node_kind { kernel, copy, other };

/// `after`: numbers of earlier nodes, whose end it waits for.
struct node {
  std::function<void()> work;
  node_kind kind = node_kind::other;
  int priority = 0;
  std::set<int> after;
  int number = 0;
  /// Nodes of which only the start is waited for: the kernel itself waits for their end.
  std::set<int> programmatic;
};
/// Nodes in the order of capture, which is one that edges allow.
struct graph {
  std::deque<node> nodes;

  /// Whether a path leads from node `from` to node `to`, which is not one edge.
  bool has_detour(int from, int to) const {
    std::set<int> reached;
    for (int const n : nodes[std::size_t(to)].after)
      if (n > from) reached.insert(n);
    while (!reached.empty()) {
      int const last = *reached.rbegin();
      reached.erase(last);
      for (int const n : nodes[std::size_t(last)].after) {
        if (n == from) return true;
        if (n > from) reached.insert(n);
      }
    }
    return false;
  }
  bool has_path(int from, int to) const {
    return nodes[std::size_t(to)].after.contains(from) || has_detour(from, to);
  }
  long edges() const {
    long n = 0;
    for (node const& x : nodes) n += long(x.after.size());
    return n;
  }
};

struct stream;

/// From the begin of a capture to its end.
struct capture {
  std::unique_ptr<graph> of = std::make_unique<graph>();
  stream* origin = nullptr;
  bool is_valid = true;
};

struct event {
  bool is_timed = false;
  int device = 0;
  long promised = 0, reached = 0;
  /// Of an event that was recorded under capture last: where, and after which nodes.
  std::shared_ptr<capture> in;
  std::set<int> after;
};
struct task {
  std::function<void()> work;
  event *awaited = nullptr, *recorded = nullptr;
  long until = 0;  // the record that is awaited, or this one
  /// Of a kernel that waits for kernels of other devices: it starts when this is called first, and
  /// has ended when true is returned.
  std::function<bool()> has_met = {};
  bool is_kernel = false;
  bool is_ready() const {
    return (awaited == nullptr || awaited->reached >= until) && (!has_met || has_met());
  }
};
/// What surrounds a kernel on a device: see fake_gpu::device.
using surroundings = void (*)(int device, std::function<void()> const& work);
inline surroundings around_kernels = nullptr;

struct stream {
  std::deque<task> tasks;
  int priority = 0, device = 0;
  std::shared_ptr<capture> in;  // null: what is put on the stream is done
  std::set<int> last;           // nodes that the next one waits for

  /// What the device is to do. `is_early`: a kernel that may start before the one before it ends.
  void put(std::function<void()> work, node_kind kind = node_kind::kernel, bool is_early = false) {
    if (kind == node_kind::kernel && around_kernels != nullptr)
      work = [here = device, kernel = std::move(work)] { around_kernels(here, kernel); };
    if (in == nullptr) {
      tasks.push_back({std::move(work)});
      tasks.back().is_kernel = kind == node_kind::kernel;
      return;
    }
    int const number = int(in->of->nodes.size());
    node made{std::move(work), kind, priority, last, number, {}};
    if (is_early)
      for (int const n : last)
        if (in->of->nodes[std::size_t(n)].kind == node_kind::kernel) made.programmatic.insert(n);
    in->of->nodes.push_back(std::move(made));
    last = {number};
  }
};

/// Why a call is refused.
enum class refusal {
  none,
  unsupported,  // not under capture
  invalidated,  // by an earlier refusal
  unjoined,     // a stream of the capture has work that the first does not wait for
  isolation,    // a capture waits for what is not a part of it
  captured,     // the host waits for an event under capture
  unmatched     // the end of a capture without a begin
};

/// Which stream goes on when several can: the one that is waited for, and others only if they must;
/// or the last created, or the first. Of a graph's nodes: in the order of capture; the last that
/// can run; or any, other ones in each launch.
enum class preference { awaited, last, first };

/// Of kernels that wait for other devices, where there are any: whether they keep the next kernel
/// of a stream from its device; and what is done when no stream can go on.
inline bool (*is_full)(stream const*) = nullptr;
inline void (*idle)() = nullptr;

struct machine {
  std::vector<stream*> streams;
  preference prefers = preference::awaited;
  bool is_random_in_graphs = false;  // whatever it prefers
  long captures = 0, graph_launches = 0;
  /// Waits for events under capture so far, and one that is left out, as by a program that forgot
  /// it. `held_back`: the nodes that it was for, which graphs run as late as their edges allow.
  long waits = 0, left_out = -1;
  std::set<int> held_back;
  graph const* last_captured = nullptr;

  bool is_capturing() const {
    return std::any_of(streams.begin(), streams.end(),
                       [](stream const* s) { return s->in != nullptr; });
  }
  /// Refuses a call that no capture may see. The capture is lost.
  refusal refuse_under_capture() {
    refusal found = refusal::none;
    for (stream* s : streams)
      if (s->in != nullptr) found = invalidate(*s->in, refusal::unsupported);
    return found;
  }
  static refusal invalidate(capture& c, refusal why) {
    refusal const result = c.is_valid ? why : refusal::invalidated;
    c.is_valid = false;
    return result;
  }
  /// Of anything that is put on a stream.
  static refusal check(stream const* s) {
    return s->in != nullptr && !s->in->is_valid ? refusal::invalidated : refusal::none;
  }

  static refusal record(event* e, stream* s) {
    if (refusal const r = check(s); r != refusal::none) return r;
    e->in = s->in;
    e->after = s->last;
    if (s->in == nullptr) {
      long const n = ++e->promised;
      s->tasks.push_back({[e, n] { e->reached = n; }, nullptr, e, n});
    }
    return refusal::none;
  }
  refusal wait(stream* s, event* e) {
    if (refusal const r = check(s); r != refusal::none) return r;
    if (e->in != nullptr && waits++ == left_out) {
      held_back = e->after;
      return refusal::none;
    }
    if (e->in == nullptr) {
      if (s->in != nullptr)
        return e->promised == 0 ? refusal::none : invalidate(*s->in, refusal::isolation);
      s->tasks.push_back({{}, e, nullptr, e->promised});
      return refusal::none;
    }
    if (e->in->of == nullptr) return refusal::captured;  // its capture is over
    if (s->in == nullptr) s->in = e->in;                 // the stream joins the capture
    if (s->in != e->in) return invalidate(*s->in, refusal::isolation);
    s->last.insert(e->after.begin(), e->after.end());
    return refusal::none;
  }

  refusal begin_capture(stream* s) {
    if (s->in != nullptr) return invalidate(*s->in, refusal::unsupported);
    s->in = std::make_shared<capture>();
    s->in->origin = s;
    ++captures;
    return refusal::none;
  }
  /// All streams leave the capture. Null if it is refused.
  refusal end_capture(stream* s, std::unique_ptr<graph>& to) {
    to = nullptr;
    std::shared_ptr<capture> const c = s->in;
    if (c == nullptr || c->origin != s) return refusal::unmatched;
    refusal result = c->is_valid ? refusal::none : refusal::invalidated;
    for (stream* other : streams) {
      if (other->in != c) continue;
      for (int const n : other->last) {
        bool joined = s->last.contains(n);
        for (int const end : s->last) joined = joined || c->of->has_path(n, end);
        if (!joined && result == refusal::none) result = refusal::unjoined;
      }
    }
    for (stream* other : streams)
      if (other->in == c) other->in = nullptr, other->last.clear();
    if (result == refusal::none) to = std::move(c->of);
    c->of = nullptr;
    return result;
  }
  void launch(graph const& g, stream* s) {
    ++graph_launches;
    s->tasks.push_back({[this, &g] { run(g); }});
  }

  static bool is_occupied(stream const* s) {
    return is_full != nullptr && s->tasks.front().is_kernel && is_full(s);
  }
  static bool can_go_on(stream const* s) {
    return !s->tasks.empty() && !is_occupied(s) && s->tasks.front().is_ready();
  }
  /// The stream that goes on; none can while kernels of other processes are awaited.
  stream* next(stream* awaited) const {
    if (prefers == preference::awaited) {
      stream* const needed = needed_for(awaited);
      if (needed != nullptr || idle == nullptr) return needed;
    }
    stream* found = nullptr;
    for (stream* s : streams)
      if (can_go_on(s) && (found == nullptr || prefers == preference::last)) found = s;
    return found;
  }
  void reach(event const* awaited) {
    while (awaited->reached < awaited->promised) {
      auto const records = [&](task const& t) { return t.recorded == awaited; };
      auto const at = std::find_if(streams.begin(), streams.end(), [&](stream const* s) {
        return std::any_of(s->tasks.begin(), s->tasks.end(), records);
      });
      if (at == streams.end()) std::abort();
      if (!go_on(*at)) std::abort();
    }
  }
  static void run_first(stream* s) {
    task const t = std::move(s->tasks.front());
    s->tasks.pop_front();
    if (t.work) t.work();
  }
  /// False: each waits for another, for ever.
  [[nodiscard]] bool finish(stream* awaited) {
    while (!awaited->tasks.empty())
      if (!go_on(awaited)) return false;
    return true;
  }
  /// One task of a stream, the awaited one if possible; other processes, if none can go on. False:
  /// there is nothing to wait for.
  [[nodiscard]] bool go_on(stream* awaited) {
    stream* const s = next(awaited);
    if (s != nullptr)
      run_first(s);
    else if (idle != nullptr)
      idle();
    return s != nullptr || idle != nullptr;
  }

 private:
  /// The stream that has to go on first so that another one can; null if there is none.
  stream* needed_for(stream* awaited) const {
    for (std::size_t i = 0; awaited != nullptr && i <= streams.size(); ++i) {
      if (awaited->tasks.empty()) return nullptr;
      task const& first = awaited->tasks.front();
      if (is_occupied(awaited)) return nullptr;
      if (first.is_ready()) return awaited;
      if (first.awaited == nullptr) return nullptr;
      auto const records = [&](task const& t) {
        return t.recorded == first.awaited && t.until == first.until;
      };
      auto const found = std::find_if(streams.begin(), streams.end(), [&](stream const* s) {
        return std::any_of(s->tasks.begin(), s->tasks.end(), records);
      });
      awaited = found == streams.end() ? nullptr : *found;
    }
    return nullptr;
  }
  /// All nodes of a graph, each when those before it have run.
  void run(graph const& g) {
    std::vector<int> left(g.nodes.size());
    std::vector<std::vector<int>> followers(g.nodes.size());
    std::set<int> ready;
    for (node const& n : g.nodes) {
      left[std::size_t(n.number)] = int(n.after.size());
      for (int const before : n.after) followers[std::size_t(before)].push_back(n.number);
      if (n.after.empty()) ready.insert(n.number);
    }
    while (!ready.empty()) {
      auto chosen = ready.begin();
      if (prefers == preference::last) chosen = std::prev(ready.end());
      if (prefers == preference::first || is_random_in_graphs) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        chosen = std::next(ready.begin(), long((random_ >> 33) % ready.size()));
      }
      for (auto it = ready.begin(); it != ready.end() && held_back.contains(*chosen); ++it)
        if (!held_back.contains(*it)) chosen = it;
      int const n = *chosen;
      ready.erase(chosen);
      if (g.nodes[std::size_t(n)].work) g.nodes[std::size_t(n)].work();
      for (int const f : followers[std::size_t(n)])
        if (--left[std::size_t(f)] == 0) ready.insert(f);
    }
  }
  unsigned long long random_ = 1;
};

}  // namespace fake_gpu
