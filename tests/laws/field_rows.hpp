// SPDX-License-Identifier: BSL-1.0
//
// Ops of a plane in a prime field that work along rows or columns: norms, copies, elements.
#pragma once

#include "laws/field_planes.hpp"

namespace laws {

/// Base of a run: kinds without large weights.
class field_rows : protected field_planes {
 protected:
  using field_planes::field_planes;

  void norm(plane& x, op const& o) {
    int const C = o.columns;
    long const rows = long(B) * o.rows;
    if (o.kind == kind::norm) {
      numbers const a = read(x, o, 0);
      numbers& y = result(x, o);
      numbers& s = result(x, o, 1);
      needs(long(s.size()) == 2 * rows && long(a.size()) == rows * C, "rows of a norm");
      for (long r = 0; r < rows; ++r) {
        for (int c = 0; c < C; ++c) {
          number const e = a[std::size_t(r * C + c)];
          add_to(s[std::size_t(2 * r)], e);
          add_to(s[std::size_t(2 * r + 1)], times(e, e));
        }
        for (int c = 0; c < C; ++c) {
          number& to = y[std::size_t(r * C + c)];
          to = times(plus(a[std::size_t(r * C + c)], s[std::size_t(2 * r)]), weight(x, o.in[1], c));
          if (o.in[2].where != space::none) add_to(to, weight(x, o.in[2], c));
        }
      }
    } else if (o.kind == kind::norm_gradient) {
      numbers const dy = read(x, o, 0), a = read(x, o, 1), s = read(x, o, 3);
      numbers& dx = result(x, o);
      for (long r = 0; r < rows; ++r) {
        number sum = 0;
        for (int c = 0; c < C; ++c)
          add_to(sum, times(times(dy[std::size_t(r * C + c)], weight(x, o.in[2], c)),
                            a[std::size_t(r * C + c)]));
        for (int c = 0; c < C; ++c)
          dx[std::size_t(r * C + c)] =
              plus(times(dy[std::size_t(r * C + c)], weight(x, o.in[2], c)),
                   times(s[std::size_t(2 * r + 1)], sum));
      }
    } else {
      numbers const dy = read(x, o, 0), a = read(x, o, 1), s = read(x, o, 2);
      for (long r = 0; r < rows; ++r)
        for (int c = 0; c < C; ++c) {
          number const d = dy[std::size_t(r * C + c)];
          add_gradient(x, o.out[0], c,
                       times(d, plus(a[std::size_t(r * C + c)], s[std::size_t(2 * r)])));
          add_gradient(x, o.out[1], c, d);
        }
    }
  }
  void group_norm(plane& x, op const& o) {
    op const& f = g_.ops[o.origin];
    int const C = o.columns, G = f.attributes.group().groups, own = C / G;
    long const R = o.rows;
    bool const is_forward = o.kind == kind::group_norm,
               is_input = o.kind == kind::group_norm_gradient;
    numbers const a = read(x, o, is_forward ? 0 : 1), dy = is_forward ? numbers{} : read(x, o, 0);
    numbers sums_of = is_forward ? numbers{} : read(x, o, is_input ? 3 : 2);
    numbers none;
    if (is_forward) {
      numbers& s = result(x, o, 1);
      needs(long(s.size()) == 2L * B * G, "statistics of groups");
      for (long b = 0; b < B; ++b)
        for (long e = 0; e < R * C; ++e)
          add_to(s[std::size_t(2 * (b * G + e % C / own))], a[std::size_t(b * R * C + e)]);
      sums_of = s;
    }
    numbers& y = is_forward || is_input ? result(x, o) : none;
    for (long b = 0; b < B; ++b) {
      numbers of_group(std::size_t(G), 0);
      for (long e = 0; is_input && e < R * C; ++e)
        add_to(of_group[std::size_t(e % C / own)],
               times(dy[std::size_t(b * R * C + e)], weight(x, f.in[1], e % C)));
      for (long e = 0; e < R * C; ++e) {
        long const at = b * R * C + e, c = e % C;
        number const s = sums_of[std::size_t(2 * (b * G + c / own))];
        if (is_forward) {
          y[std::size_t(at)] = times(plus(a[std::size_t(at)], s), weight(x, o.in[1], c));
          if (o.in[2].where != space::none) add_to(y[std::size_t(at)], weight(x, o.in[2], c));
        } else if (is_input) {
          y[std::size_t(at)] = plus(times(dy[std::size_t(at)], weight(x, f.in[1], c)),
                                    times(s, of_group[std::size_t(c / own)]));
        } else {
          add_gradient(x, o.out[0], c, times(dy[std::size_t(at)], plus(a[std::size_t(at)], s)));
          add_gradient(x, o.out[1], c, dy[std::size_t(at)]);
        }
      }
    }
  }
  void batch_norm(plane& x, op const& o) {
    int const C = o.columns;
    if (o.kind == kind::batch_statistics) {
      numbers const a = read(x, o, 0);
      numbers& s = result(x, o);
      for (std::size_t e = 0; e < a.size(); ++e) {
        add_to(s[e % std::size_t(C)], a[e]);
        add_to(s[std::size_t(C) + e % std::size_t(C)], times(a[e], a[e]));
      }
      for (int c = 0; c < C; ++c) s[std::size_t(2 * C + c)] = weight(x, o.in[1], c);
    } else if (o.kind == kind::batch_norm) {
      numbers const a = read(x, o, 0), s = read(x, o, 1);
      numbers& y = result(x, o);
      for (std::size_t e = 0; e < a.size(); ++e) {
        std::size_t const c = e % std::size_t(C);
        y[e] =
            times(plus(a[e], times(s[c], s[std::size_t(2 * C) + c])), weight(x, o.in[2], long(c)));
        if (o.in[3].where != space::none) add_to(y[e], weight(x, o.in[3], long(c)));
      }
    } else if (o.kind == kind::batch_sums) {
      numbers const dy = read(x, o, 0), a = read(x, o, 1), s = read(x, o, 2);
      numbers& sums = result(x, o);
      for (std::size_t e = 0; e < a.size(); ++e) {
        std::size_t const c = e % std::size_t(C);
        add_to(sums[c], times(dy[e], plus(a[e], s[c])));
        add_to(sums[std::size_t(C) + c], dy[e]);
      }
    } else if (o.kind == kind::batch_norm_gradient) {
      numbers const dy = read(x, o, 0), a = read(x, o, 1);
      numbers const sums =
          o.in[3].where == space::none ? numbers(std::size_t(2 * C), 0) : read(x, o, 3);
      numbers& dx = result(x, o);
      for (std::size_t e = 0; e < a.size(); ++e) {
        std::size_t const c = e % std::size_t(C);
        dx[e] = plus(times(dy[e], weight(x, o.in[4], long(c))),
                     plus(sums[c], times(a[e], sums[std::size_t(C) + c])));
      }
    } else {
      numbers const s = read(x, o, 0);
      for (int c = 0; c < C; ++c) {
        add_gradient(x, o.out[0], c, s[std::size_t(c)]);
        add_gradient(x, o.out[1], c, s[std::size_t(C + c)]);
      }
    }
  }
  void cells(plane& x, op const& o) {
    bool const is_forward = o.kind == kind::pool || o.kind == kind::resample;
    op const& f = g_.ops[o.origin];
    int const C = o.columns, in = pp::detail::shape_of_operand(f, 0).rows, out = f.rows;
    numbers const a = read(x, o, 0);
    numbers& y = result(x, o);
    int const reads = f.kind == kind::pool ? in : 4;
    for (long b = 0; b < B; ++b)
      for (long s = 0; s < out; ++s)
        for (int k = 0; k < reads; ++k)
          for (int c = 0; c < C; ++c) {
            long const cell = (b * in + (s * 3 + k) % in) * C + c, at = (b * out + s) * C + c;
            if (is_forward)
              add_to(y[std::size_t(at)], times(number(k + 1), a[std::size_t(cell)]));
            else
              add_to(y[std::size_t(cell)], times(number(k + 1), a[std::size_t(at)]));
          }
  }
  void copied(plane& x, op const& o) {
    int const C = o.columns;
    long const rows = long(B) * o.rows;
    numbers& y = result(x, o);
    needs(long(y.size()) == rows * C, "result of another size");
    if (o.kind == kind::transpose) {
      numbers const& a = read(x, o, 0);
      for (long b = 0; b < B; ++b)
        for (long r = 0; r < o.rows; ++r)
          for (long c = 0; c < C; ++c)
            y[std::size_t((b * o.rows + r) * C + c)] = a[std::size_t((b * C + c) * o.rows + r)];
      return;
    }
    if (o.kind == kind::slice) {
      auto const of = o.attributes.slice();
      numbers const& a = read(x, o, 0);
      for (long r = 0; r < rows; ++r)
        for (long c = 0; c < C; ++c)
          y[std::size_t(r * C + c)] = a.at(std::size_t(r * of.columns + of.first + c));
      return;
    }
    auto const of = o.attributes.concat();
    bool const is_parameter = pp::detail::is_parameter(o.in[0]);
    numbers const left = is_parameter ? numbers{} : read(x, o, 0), right = read(x, o, 1);
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < C; ++c)
        y[std::size_t(r * C + c)] = c >= of.left
                                        ? right.at(std::size_t(r * (C - of.left) + c - of.left))
                                    : is_parameter ? weight(x, o.in[0], c)
                                                   : left.at(std::size_t(r * of.left + c));
  }
  /// The gradients of parameters that are added or multiplied to every row.
  void sums(plane& x, op const& o) {
    numbers const dy = read(x, o, 0);
    long const C = o.columns, n = long(dy.size()) / B;
    for (long e = 0; e < long(dy.size()); ++e)
      if (o.kind == kind::row_bias_gradient)
        add_gradient(x, o.out[0], e % n, dy[std::size_t(e)]);
      else if (o.kind == kind::bias_gradient)
        add_gradient(x, o.out[0], e % C, dy[std::size_t(e)]);
      else
        add_gradient(x, o.out[0], o.attributes.slope().is_shared ? 0 : e % C,
                     times(dy[std::size_t(e)], read(x, o, 1)[std::size_t(e)]));
  }
  /// Kinds that read one row of each operand, or one element.
  void by_rows(plane& x, op const& o) {
    op const& f = g_.ops[o.origin];
    int const C = o.columns;
    numbers const a = read(x, o, 0);
    numbers const z = o.ins > 1 && o.in[1].where == space::value ? read(x, o, 1) : numbers{};
    numbers& y = result(x, o);
    long const rows = long(B) * o.rows, n = o.rows * long(C);
    auto const in_row = [&](numbers const& v, long width, long r, auto const& term) {
      number s = 0;
      for (long c = 0; c < width; ++c) add_to(s, term(v[std::size_t(r * width + c)], c));
      return s;
    };
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < C; ++c) {
        std::size_t const e = std::size_t(r * C + c);
        number& to = y.at(e);
        switch (int(o.kind)) {
          case int(kind::bias): to = plus(a.at(e), weight(x, o.in[1], c)); break;
          case int(kind::row_bias): to = plus(a.at(e), weight(x, o.in[1], long(e) % n)); break;
          case int(kind::map): to = plus(times(a.at(e), a[e]), 3); break;
          case int(kind::map_gradient): to = times(a.at(e), plus(z.at(e), 1)); break;
          case int(kind::prelu):
          case int(kind::prelu_gradient): {
            operand const slope = o.in[o.kind == kind::prelu ? 1 : 2];
            to = times(a.at(e), weight(x, slope, o.attributes.slope().is_shared ? 0 : c));
            break;
          }
          case int(kind::add): to = plus(a.at(e), z.at(e)); break;
          case int(kind::multiply): to = times(a.at(e), z.at(e)); break;
          case int(kind::dropout): {
            long const own = long(e) % n,
                       at = has(fault::dropout_by_place_in_part) ? own : place(f, x, own);
            number const bits = mixed(seed_ * 31 + number(o.in[1].index) * 7919 +
                                      number(long(e) / n) * 104729 + number(at));
            to = bits % 10 == 0 ? 0 : a.at(e);
            break;
          }
          case int(kind::response_norm):
          case int(kind::response_norm_gradient): {
            numbers const& v = o.kind == kind::response_norm ? a : z;
            number s = 1;
            for (long q = c > 2 ? c - 2 : 0; q < C && q < c + 3; ++q)
              add_to(s, v[std::size_t(r * C + q)]);
            to = times(a.at(e), s);
            break;
          }
          case int(kind::softmax):
            to = times(a.at(e),
                       in_row(a, C, r, [](number v, long i) { return times(v, number(i + 1)); }));
            break;
          case int(kind::softmax_gradient):
            to = plus(a.at(e), in_row(a, C, r, [&](number v, long i) {
                        return times(v, z.at(std::size_t(r * C + i)));
                      }));
            break;
          case int(kind::gate):
            to = times(a.at(std::size_t(2 * r * C + c)), a.at(std::size_t((2 * r + 1) * C + c)));
            break;
          case int(kind::gate_gradient): {
            long const half = C / 2, other = c < half ? c + half : c - half;
            to = times(a.at(std::size_t(r * half + c % half)), z.at(std::size_t(r * C + other)));
            break;
          }
          case int(kind::row_dot): {
            long const width = o.attributes.contraction().inner;
            to = in_row(a, width, r, [&](number v, long i) {
              return times(v, z.at(std::size_t(r * width + i)));
            });
            break;
          }
          case int(kind::row_scale): to = times(a.at(e), z.at(std::size_t(r))); break;
          case int(kind::squared_error):
          case int(kind::element_loss):
          case int(kind::row_loss):
          case int(kind::contrast): {
            long const own = long(e) % n, at = place(f, x, own);
            number const target = mixed(seed_ * 13 + number(long(e) / n) * 104729 + number(at));
            number const s = o.kind == kind::row_loss || o.kind == kind::contrast
                                 ? in_row(a, C, r, [](number v, long) { return v; })
                                 : 1;
            to = plus(times(a.at(e), s), target % modulus);
            break;
          }
          default: needs(false, pp::detail::name_of(o.kind));
        }
      }
  }
};

}  // namespace laws
