// SPDX-License-Identifier: BSL-1.0
//
// A search for the best order under a memory limit, for any times. (1) The known families, so that
// none that fits into the memory is better than the result. (2) Short problems: the same one with
// few micro-batches. Their openings are families, plans and, on a V, building blocks; of a small
// problem, the best of all orders or of many. (3) The best openings of each kind are improved by
// tabu search, first those of few plans and for a short time, which often meets the floor; and then
// the best orders, also by annealing. (4) After every improvement, periods of
// a short order are repeated until it has all micro-batches. (5) The best long orders are improved
// until that gains nothing. The search ends early at the floor, and at an order that is proved by
// all others.
//
// The classes of a search are templates over nothing, so that a program that searches for no
// schedule instantiates nothing of them.
#pragma once

#include <type_traits>

#include <pipe/schedule/floors.hpp>
#include <pipe/schedule/search/search_exhaustive.hpp>
#include <pipe/schedule/search/search_openings.hpp>
#include <pipe/schedule/search/search_repeat.hpp>
#include <pipe/schedule/search/search_tasks.hpp>
#include <pipe/schedule/search/search_tuner.hpp>
#include <pipe/schedule/validate.hpp>

namespace pp {

namespace detail {

/// The options of a search.
struct search_options {
  static constexpr long no_limit = search_problem::no_limit;
  static constexpr long usual_effort = 200'000'000;

  objective want = objective::stage_local_span;
  /// A memory limit of every rank beside the problem's own, in the unit of memory_change.
  long limit = no_limit;
  /// A factor of the usual effort, which grows with the number of actions: twice usual_effort is
  /// twice as much.
  long effort = usual_effort;
  int threads = 0;  ///< at most; 0: as many as this process has cores

  /// A usual effort times the factor.
  constexpr long scaled(long usual) const {
    constexpr long parts = 1000;
    long const factor = effort / (usual_effort / parts);
    return usual / parts * factor + usual % parts * factor / parts;
  }
  /// A usual number of openings times the factor, within bounds.
  constexpr int scaled_count(int usual) const {
    long const count = scaled(usual);
    return count < usual / 16 ? usual / 16 : count > 4 * usual ? 4 * usual : int(count);
  }
  /// The beginnings that each layer of an exhaustive search keeps, so that all layers together take
  /// as long as timing some 6 million actions.
  constexpr int width(long actions) const {
    constexpr long all = 6'000'000, most = 4000;
    long const width = scaled(all) / actions / actions;
    return static_cast<int>(width < most ? width : most);
  }
  /// The actions to be timed by the improvement of a problem of that many actions.
  constexpr long budget(long actions) const {
    constexpr long least = 6'750'000, each = 1000;
    return scaled(each * actions < least ? least : each * actions);
  }
};

/// One problem of a search, and its best orders.
struct search_question {
  search_problem problem;
  search_actions actions;
  planner plans;
  shortlist families, varied, planned, blocks, exhaustive, improved;
  plan_list best_plans;
  long floor;  ///< no order is below; an exhaustive search raises it to the best order's time

  template <pipeline_problem Problem>
  constexpr search_question(Problem const& question, placement where, search_options const& options,
                            int micro_batches)
      : problem(question, where, options.want, options.limit, micro_batches), actions(problem),
        plans(problem), floor(floor_of_problem()) {}

 private:
  template <class = void>
  constexpr long floor_of_problem() const {
    flush_floor const all = floor_of(problem, problem.where);
    return problem.want == objective::makespan ? all.makespan : all.stage_local_span;
  }
};

/// One search.
///
/// needs: plans are possible
template <class = void>
class schedule_search {
 public:
  schedule_search(search_problem const& problem, search_options const& options)
      : options_(options), all_(problem, problem.where, options, problem.micro_batches) {
    int const p = problem.ranks, m = problem.micro_batches;
    // A beginning and an end need as many micro-batches as are in flight, and some more; all others
    // must be whole periods.
    long flight = 3L * p;
    for (int rank = 0; rank < p; ++rank)
      if (long const each = problem.cost(rank).memory.forward; each > 0)
        if (long const fit = problem.room(rank) / each; fit < flight) flight = fit;
    // Loops tend to have periods of P micro-batches.
    bool const loops = problem.where == placement::loop;
    for (auto const& [times, divisor] : {shorter{2, 6}, {3, loops ? p : 4}}) {
      int least = times * p;
      if (least < flight + 6) least = static_cast<int>(flight) + 6;
      int const few = least + (m - least) % divisor;
      if (m - least >= divisor)
        short_[shorts_++] =
            owner<search_question>(new search_question(problem, problem.where, options, few));
    }
  }

  /// Searches. The result is the best order, or null if the openings find none: if no memory is
  /// left where micro-batches keep some of theirs.
  search_order const* run() {
    open_usual(all_);
    if (best_.size() == 0) return nullptr;
    for (int part : {few_openings, 1})
      if (!at_floor()) start(part);
    improve_again();
    if (!at_floor()) improve_long();
    return &best_.order(0);
  }

 private:
  struct shorter {
    int times, divisor;
  };
  static constexpr int most_shorts = 2, kinds = 5, kept_of_a_kind = 2;
  static constexpr int usual_tenure = 6, low_heat = 30;
  static constexpr int least_width = 8;   // of an exhaustive search
  static constexpr int few_openings = 8;  // 1 / 8 of the plans and blocks
  static constexpr int most_of_question = kinds * kept_of_a_kind;
  static constexpr int most_tasks = (most_shorts + 1) * kinds * kept_of_a_kind;

  /// An improvement, and what became of it.
  struct task {
    search_question* question = nullptr;
    search_order const* from = nullptr;
    order_tuner<>::effort how;
    int seed = 0;
    score repeated{};  ///< the score of `from`, if its periods have been repeated already
    score value{};
    owner<search_order> made;
    shortlist longer;
  };

  bool at_floor() const { return best_.size() > 0 && best_.value(0).worst <= all_.floor; }
  search_question& question(int i) { return shorts_ > 0 ? *short_[i] : all_; }
  /// The actions to be timed by the improvement of one of the questions.
  long budget_of(search_question const& q) const {
    return options_.budget(q.actions.count) * 2 / questions();
  }
  int questions() const { return shorts_ > 0 ? shorts_ : 1; }

  /// The families, and the usual plans.
  void open_usual(search_question& q) {
    search_openings openings(q.plans, q.actions);
    openings.keep(&q.families);
    openings.try_families(q.floor);
    openings.keep(&q.planned);
    openings.keep_plans(&q.best_plans);
    openings.try_usual(100, q.floor);
    if (&q == &all_) offer_openings();
  }
  /// Openings of a problem that is improved; of plans and blocks 1 / part.
  void open(search_question& q, int part) {
    if (&q != &all_ && q.families.size() + q.planned.size() == 0) open_usual(q);
    if (has_floor(q)) return;
    search_openings openings(q.plans, q.actions);
    search_dice roll(q.actions.micro_batches);
    openings.keep(&q.planned);
    openings.keep_plans(&q.best_plans);
    openings.try_usual(100, q.floor);
    openings.try_plans(options_.scaled_count(450) / part, q.floor, roll);
    openings.keep(&q.blocks);
    openings.try_blocks(options_.scaled_count(225) / part, q.floor);
    if (part == 1 && !has_floor(q)) {
      try_varied(q);
      try_all(q);
    }
    if (&q == &all_) offer_openings();
  }
  void offer_openings() {
    search_question const& q = all_;
    for (shortlist const* kind : {&q.families, &q.varied, &q.planned, &q.blocks, &q.exhaustive})
      for (int i = 0; i < kind->size(); ++i) best_.offer(kind->value(i), kind->order(i));
  }

  /// Whether an opening of a question is at its floor.
  bool has_floor(search_question const& q) const {
    for (shortlist const* kind : {&q.families, &q.planned, &q.blocks})
      if (kind->size() > 0 && kind->value(0).worst <= q.floor) return true;
    return false;
  }
  /// Variations of the usual plans, fewer of long orders.
  void try_varied(search_question& q) {
    constexpr long all = 750'000, most = 1500;
    long const count = all / q.actions.count;
    search_openings openings(q.plans, q.actions);
    search_dice roll(q.actions.micro_batches + 7);
    openings.try_usual(100, q.floor);
    openings.keep(&q.varied);
    openings.keep_plans(&q.best_plans);
    openings.vary_plans(options_.scaled_count(static_cast<int>(count < most ? count : most)),
                        q.floor, roll);
  }
  /// All orders that are better than the best opening, if the problem is small.
  void try_all(search_question& q) {
    int const width = options_.width(q.actions.count);
    shortlist const* from = nullptr;
    for (shortlist const* kind : {&q.families, &q.varied, &q.planned, &q.blocks})
      if (kind->size() > 0 && (from == nullptr || kind->value(0) < from->value(0))) from = kind;
    if (width < least_width || from == nullptr || from->value(0).worst <= q.floor) return;
    search_order order(q.actions);
    order.assign(from->order(0));
    auto const all = owner<exhaustive_search<>>(new exhaustive_search(q.actions, width));
    bool const is_best = all->improve(order);
    score const found = order_times(q.actions).play(order);
    if (found < from->value(0)) q.exhaustive.offer(found, order);
    if (is_best) q.floor = found.worst;
  }
  /// (2), (3): openings, and the improvement of the best of each kind.
  void start(int part) {
    search_tasks all(questions());
    all.run(threads(), [&](int i) { open(question(i), part); });
    if (shorts_ > 0 && part == 1) open_long();
    if (at_floor()) return;
    int count = 0;
    for (int i = 0; i < questions(); ++i) {
      search_question& q = question(i);
      int const first = count;
      for (shortlist const* kind : {&q.families, &q.varied, &q.planned, &q.blocks, &q.exhaustive})
        for (int k = 0; k < kind->size() && k < (part > 1 ? 1 : kept_of_a_kind); ++k)
          add(count, q, kind->order(k)).how.tenure = usual_tenure;
      for (int k = first; k < count; ++k)
        tasks_[k].how.actions = budget_of(q) / 2 / (part > 1 ? most_of_question : count - first);
    }
    improve(count);
    // A short trial decides whether the search ends, and nothing else.
    for (int i = 0; i < questions() && part > 1; ++i)
      for (auto kind :
           {&search_question::planned, &search_question::blocks, &search_question::improved})
        (question(i).*kind).clear();
    if (part > 1) seeds_ = 0;
  }
  /// Plans that do well for few micro-batches or, of the usual ones, for all, and variations.
  void open_long() {
    search_openings openings(all_.plans, all_.actions);
    search_dice roll(all_.actions.micro_batches);
    openings.keep(&best_);
    openings.try_again(all_.best_plans);
    for (int i = 0; i < shorts_; ++i) openings.try_again(short_[i]->best_plans);
    openings.vary_plans(options_.scaled_count(1500), all_.floor, roll);
  }
  /// (3): the best order of each problem, by moves that stay for shorter and for longer and by
  /// annealing, while that gains something.
  void improve_again() {
    constexpr int most_rounds = 4;
    for (int round = 0; round < most_rounds && !at_floor(); ++round) {
      score const before = best_.value(0);
      int count = 0;
      for (int i = 0; i < questions(); ++i) {
        search_question& q = question(i);
        if (q.improved.size() == 0 || q.improved.value(0).worst <= q.floor) continue;
        for (int k = 0; k < 3; ++k) {
          int const which = k == 2 && q.improved.size() > 1 ? 1 : 0;
          task& t = add(count, q, q.improved.order(which));
          if (k == 1)
            t.how.heat = low_heat;
          else
            t.how.tenure = k == 0 ? 4 : 10;
          t.how.actions = budget_of(q) / 4;
          t.repeated = q.improved.value(which);
        }
      }
      improve(count);
      if (!(best_.value(0) < before)) break;
    }
  }
  /// (5)
  void improve_long() {
    constexpr int most_rounds = 4;
    for (int round = 0; round < most_rounds && !at_floor(); ++round) {
      score const before = best_.value(0);
      int count = 0;
      for (int i = 0; i < 2; ++i) {
        task& t = add(count, all_, best_.order(i < best_.size() && round == 0 ? i : 0));
        if (round == 0 || i == 0)
          t.how.tenure = usual_tenure;
        else
          t.how.heat = low_heat;
        t.how.actions = options_.budget(all_.actions.count) / 4;
      }
      improve(count);
      if (!(best_.value(0) < before)) break;
    }
  }

  task& add(int& count, search_question& q, search_order const& from) {
    task& t = tasks_[count++];
    t = task{};
    t.question = &q;
    t.from = &from;
    t.seed = ++seeds_;
    return t;
  }
  /// Runs the first `count` tasks, and adds what they found in the order of the tasks.
  void improve(int count) {
    search_tasks all(count);
    long effort = 0;
    for (int i = 0; i < count; ++i) effort += tasks_[i].how.actions;
    all.run(effort < least_for_threads ? 1 : threads(), [&](int i) { improve(all, i); });
    // What later tasks found depends on when they ended.
    for (int i = 0; i < count && i <= all.reached(); ++i) {
      task& t = tasks_[i];
      if (t.value.possible()) t.question->improved.offer(t.value, *t.made);
      for (int k = 0; k < t.longer.size(); ++k) best_.offer(t.longer.value(k), t.longer.order(k));
    }
  }
  void improve(search_tasks& all, int i) {
    task& t = tasks_[i];
    search_question& q = *t.question;
    search_dice roll(t.seed);
    t.made = owner<search_order>(new search_order(q.actions));
    t.made->assign(*t.from);
    auto tuner = owner<order_tuner<>>(new order_tuner(q.actions));
    t.how.good_enough = q.floor;
    t.value = tuner->improve(*t.made, t.how, roll, [&] { return all.needless(i); });
    if (!t.value.possible()) return;
    if (&q == &all_)
      t.longer.offer(t.value, *t.made);
    else if (t.value < t.repeated)
      repeat(t, all, i);
    if (t.longer.size() > 0 && t.longer.value(0).worst <= all_.floor) all.reach(i);
  }
  /// (4): periods of 1 to 6 micro-batches, from the middle of the order.
  void repeat(task& t, search_tasks const& all, int i) {
    int const few = t.question->problem.micro_batches, more = all_.problem.micro_batches - few;
    auto periods = order_periods(*t.made, t.question->problem.chunks, few);
    search_order longer(all_.actions);
    order_times times(all_.actions);
    long const most = best_.worst_kept(LONG_MAX);
    for (int length = 1; length <= few / 2 && !all.needless(i); ++length) {
      if (more % length != 0) continue;
      periods.set_length(length);
      for (int first = few / 4; first + length <= few / 4 * 3 + 1; ++first) {
        if (!periods.begin_at(first)) continue;
        periods.repeat(more / length, longer);
        if (score const found = times.play(longer, t.longer.worst_kept(most));
            found.possible() && longer.fits())
          t.longer.offer(found, longer);
      }
    }
  }
  int threads() const {
    return options_.threads > 0 ? options_.threads : static_cast<int>(allowed_cores());
  }

  /// The actions from which threads gain more than they cost to start.
  static constexpr long least_for_threads = 1'000'000;

  search_options options_;
  search_question all_;
  list<owner<search_question>, most_shorts> short_;
  int shorts_ = 0, seeds_ = 0;
  list<task, most_tasks> tasks_;
  shortlist best_;
};

/// The first openings and the families, within the default limits of compilers for constant
/// evaluations: six plans at P = 8 and M = 32, or one on a vee.
template <action_table Table>
constexpr void search_in_constant(search_problem const& problem, planner const& plans, Table& table,
                                  long floor) {
  search_actions const actions(problem);
  search_openings openings(plans, actions);
  // A compiler's operations grow with the square of the chunks per rank.
  long const price = problem.actions() * problem.held() * problem.held(), effort = 4700;
  openings.try_usual(1 + static_cast<int>(effort / price), floor);
  openings.try_families(floor);
  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0; i < openings.best().size(rank); ++i)
      table.push(rank, openings.best().at(rank, i));
}
template <action_table Table>
void search_at_run_time(search_problem const& problem, Table& table,
                        search_options const& options) {
  auto const search = owner<schedule_search<>>(new schedule_search(problem, options));
  search_order const* const found = search->run();
  for (int rank = 0; rank < problem.ranks && found != nullptr; ++rank)
    for (int i = 0; i < found->size(rank); ++i) table.push(rank, found->at(rank, i));
}

/// Fills `table` with the best order found for its placement. Leaves it empty if not even one
/// micro-batch fits into the limit.
///
/// needs: replicas(table.where) == 1
/// law:   a filled table validates, and no rank needs more memory than its limit
/// law:   the result is the same on every machine, for any number of threads
/// cost:  at the usual effort up to .9 s for 8 ranks and 32 micro-batches on one core, and up to
///        9 s for a V of 32 and 256. In a constant evaluation at most a few plans and the families
template <pipeline_problem Problem, action_table Table>
constexpr void search(Problem const& problem, Table& table, search_options const& options = {}) {
  if (!check_shape(problem, table).ok()) return;
  search_problem const question(problem, table.where, options.want, options.limit);
  planner const plans(question);
  if (!plans.possible()) return;
  if (std::is_constant_evaluated()) {
    flush_floor const floor = floor_of(question, table.where);
    search_in_constant(
        question, plans, table,
        options.want == objective::makespan ? floor.makespan : floor.stage_local_span);
  } else {
    search_at_run_time(question, table, options);
  }
}

}  // namespace detail

}  // namespace pp
