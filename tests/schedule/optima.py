#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Makes optima.txt: random small problems of schedules, with the shortest stage-local span and makespan of all orders, proved by OR-tools' CP-SAT.

optima.py COUNT TWO_WAYS > optima.txt: about half an hour of one core for 500 with one copy of each chunk, followed by TWO_WAYS problems in both
directions, where a rank may also delay its first F. Needs OR-tools (pip install ortools). Problems that are not solved in 20 s, or
that no order solves within the limit, are left out. Nothing of the library is used: this is a second opinion on its floors and searches.
"""
import random
import sys

from ortools.sat.python import cp_model

SECONDS = 20
F, B, W = range(3)


def rank_of(where, ranks, chunk, micro_batch=0):
    if where == "bidirectional" and micro_batch % 2 == 1:
        return ranks - 1 - chunk
    if where in ("straight", "bidirectional"):
        return chunk
    if where == "loop" or chunk // ranks % 2 == 0:
        return chunk % ranks
    return ranks - 1 - chunk % ranks


def shortest(where, ranks, micro_batches, hop, limit, costs, of_span):
    """The optimum, or None. costs: by chunk, F, B, W, and what they add to the memory of their rank."""
    model = cp_model.CpModel()
    chunks = range(len(costs))
    copies = 2 if where == "bidirectional" else 1
    rank = [[rank_of(where, ranks, c, j) for c in chunks] for j in range(copies)]
    most = sum(sum(c[:3]) for c in costs) * micro_batches + 2 * len(costs) * hop * micro_batches
    start = {(c, kind, j): model.NewIntVar(0, most, "") for c in chunks for kind in (F, B, W) for j in range(micro_batches)}
    end = {key: start[key] + costs[key[0]][key[1]] for key in start}

    def after(later, earlier, wait=0):
        model.Add(start[later] >= end[earlier] + wait)

    for j in range(micro_batches):
        for c in chunks:
            if c > 0:
                wait = hop if rank[0][c - 1] != rank[0][c] else 0
                after((c, F, j), (c - 1, F, j), wait)
                after((c - 1, B, j), (c, B, j), wait)
            after((c, W, j), (c, B, j))
            if j >= copies:
                for kind in (F, B, W):
                    after((c, kind, j), (c, kind, j - copies))
        after((chunks[-1], B, j), (chunks[-1], F, j))

    time = model.NewIntVar(0, most, "")
    for r in range(ranks):
        mine = [(c, j) for c in chunks for j in range(micro_batches) if rank[j % copies][c] == r]
        if not mine:
            continue
        model.AddNoOverlap([model.NewFixedSizeIntervalVar(start[c, kind, j], costs[c][kind], "") for c, j in mine for kind in (F, B, W)])
        held, amounts = [], []
        for c, j in mine:
            of_f, of_b, _ = costs[c][3:]
            # What B gives back is held from F to the end of B, the rest to the end of W; what B adds, from B on.
            for amount, begin, until in ((max(-of_b, 0), F, B), (of_f + min(of_b, 0), F, W), (max(of_b, 0), B, W)):
                if amount > 0:
                    held.append(model.NewIntervalVar(start[c, begin, j], model.NewIntVar(0, most, ""), end[c, until, j], ""))
                    amounts.append(amount)
        if limit > 0:
            model.AddCumulative(held, amounts, limit)
        begin = 0
        first = mine[0][0]
        if of_span and copies == 2:
            begin = model.NewIntVar(0, most, "")
            model.AddMinEquality(begin, [start[c, F, j] for c, j in mine])
        elif of_span:  # as in every table, the first F runs as soon as its input is there
            begin = sum(costs[c][F] + (hop if rank[0][c] != rank[0][c + 1] else 0) for c in range(first))
            model.Add(start[first, F, 0] == begin)
        for c, j in mine:
            model.Add(time >= end[c, W, j] - begin)
    model.Minimize(time)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = SECONDS
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    return int(solver.ObjectiveValue()) if solver.Solve(model) == cp_model.OPTIMAL else None


def random_problem(roll, both_ways):
    where = "bidirectional" if both_ways else roll.choice(["straight", "vee", "loop"])
    one_chunk = where in ("straight", "bidirectional")
    ranks = 2 * roll.randint(1, 2) if both_ways else roll.randint(2, 4 if one_chunk else 3)
    micro_batches = roll.randint(1, 6 if one_chunk else 4)
    chunks = ranks if one_chunk else 2 * ranks
    hop = roll.choice([0, 0, 1, 2])
    memory = roll.choice([(1, 0, -1), (2, -1, -1), (3, 1, -4)])
    alike = roll.random() < .4

    def cost():
        return (roll.randint(1, 6), roll.randint(1, 6), roll.randint(0, 5)) + memory

    first = cost()
    costs = [first if alike else cost() for _ in range(chunks)]
    if not alike and roll.random() < .3:  # sizes that do not divide each other, and some that do not add up to 0
        costs = [c[:3] + tuple(roll.choice([1, 2]) * x for x in memory) for c in costs]
    of_1f1b = ranks * max(sum(costs[c][3] for c in range(chunks) if rank_of(where, ranks, c) == r) for r in range(ranks))
    return where, ranks, micro_batches, hop, roll.choice([0] + [int(of_1f1b * part) for part in (.5, .75, 1, 1.25, 1.5, 2)]), costs


def main():
    count, two_ways = int(sys.argv[1]), int(sys.argv[2])
    print(f"# Exact optima of small problems, made by optima.py {count} {two_ways}: placement, ranks, micro-batches, hop, limit (0: none),")
    print("# shortest stage-local span, shortest makespan, and for each chunk F, B, W and the memory of F, B and W.")
    for left, both_ways in ((count, False), (two_ways, True)):
        roll = random.Random(1)
        while left > 0:
            *problem, costs = random_problem(roll, both_ways)
            best = [shortest(*problem, costs, of_span) for of_span in (True, False)]
            if None not in best:
                left -= 1
                print(*problem, *best, *(x for c in costs for x in c), flush=True)


if __name__ == "__main__":
    main()
