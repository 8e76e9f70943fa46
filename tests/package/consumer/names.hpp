// SPDX-License-Identifier: BSL-1.0
//
// Global names of a program: -Wshadow must not find them in headers.
#pragma once

#include <cstddef>

inline constexpr std::size_t count = 0;
inline int size, first, last, begin, end, data, values, rows, columns, samples, rank, ranks, stage,
    stages, chunk, step, loss, batch, inputs, outputs, labels, name, names, error, where, what, at,
    from, to, left, right, out, in, result, total, sum, scale, rate, bytes, offset, width, height,
    depth, norm, weight, weights, gradient, gradients, parameters, kernel, arena, plan, graph, op,
    ops, layer, layers, model, item, items, next, previous, list, table, action, actions, found,
    wanted, best, line, file, path, key, kind, shape, type, value, a, b, c, d, e, f, g, h, i, j, k,
    l, m, n, o, p, q, r, s, t, u, v, w, x, y, z;
