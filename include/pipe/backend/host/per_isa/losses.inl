// SPDX-License-Identifier: BSL-1.0
//
// Losses by rows and their gradients: losses of logits and a label, and the squared error.

/// One row of cross entropy: sum over j of -t_j log softmax(x)_j + z * log(sum of e^x)^2, where t
/// is 1 - smoothing at the label plus smoothing / V everywhere.
///
/// shape:  x (N = V logits), label -> loss, returned; gradient (N) = scale * d loss / d x
/// law:    label -1 (padding): loss 0 and gradient 0. The loss is a double, since it is log sum exp
///         less a logit: the difference of two large numbers may be small.
/// needs:  e has room for N elements; gradient may be x
/// source: smoothing: Szegedy et al., 2015; z: Chowdhery et al., PaLM, 2022, section 5
template <int N, class T>
PIPE_ONE_COPY double cross_entropy_row(T const* x, int label, T smoothing, T z, T scale,
                                       bool wants_gradient, T* e, T* gradient) {
  if (label < 0) {
    if (wants_gradient) std::memset(gradient, 0, sizeof(T) * N);
    return 0;
  }
  constexpr int L = lanes<T>, whole = N / L * L, rest = N - whole;
  auto const [sum, whole_log] = exponentials_of<N>(x, e);
  double loss = multiply_add(double(z) * whole_log, whole_log, whole_log - double(x[label]));
  if (smoothing != T(0))
    loss = multiply_add(double(smoothing),
                        double(x[label]) - double(row_sum<T, (rest == 0)>(N, plain_term<T>{x})) / N,
                        loss);
  if (wants_gradient) {
    T const factor = scale * multiply_add(T(2) * z, T(whole_log), T(1)) / sum,
            everywhere = scale * smoothing / T(N);
    for (int i = 0; i < whole; i += L)
      save(gradient + i, multiply_add(load(e + i), all_lanes(factor), all_lanes(-everywhere)));
    for (int i = whole; i < N; ++i) gradient[i] = multiply_add(e[i], factor, -everywhere);
    gradient[label] = multiply_add(-scale, T(1) - smoothing, gradient[label]);
  }
  return loss;
}

/// The same with a weight w_j per class, by PyTorch's definition: w_label (-(1 - smoothing) log
/// softmax(x)_label + z * log(sum of e^x)^2) plus sum over j of -(smoothing / V) w_j log
/// softmax(x)_j.
///
/// shape: as cross_entropy_row; Classes::of<T>(j) is w_j, and Classes::sum is the sum of all w_j
template <class Classes, int N, class T>
PIPE_ONE_COPY double weighted_cross_entropy_row(T const* x, int label, T smoothing, T z, T scale,
                                                bool wants_gradient, T* e, T* gradient) {
  if (label < 0) {
    if (wants_gradient) std::memset(gradient, 0, sizeof(T) * N);
    return 0;
  }
  T const own = Classes::template of<T>(label), kept = own * (T(1) - smoothing),
          each = smoothing / T(N);
  auto const [sum, whole_log] = exponentials_of<N>(x, e);
  double loss = multiply_add(double(kept), whole_log - double(x[label]),
                             double(own) * double(z) * whole_log * whole_log);
  if (smoothing != T(0))
    for (int i = 0; i < N; ++i)
      loss =
          multiply_add(double(each * Classes::template of<T>(i)), whole_log - double(x[i]), loss);
  if (wants_gradient) {
    // the sum of the weighted targets: the factor of the gradient of whole_log
    T const mass = multiply_add(each, T(Classes::sum), kept);
    T const factor = scale * multiply_add(T(2) * z * own, T(whole_log), mass) / sum;
    for (int i = 0; i < N; ++i)
      gradient[i] = multiply_add(e[i], factor, -(scale * (each * Classes::template of<T>(i))));
    gradient[label] = multiply_add(-scale, kept, gradient[label]);
  }
  return loss;
}

/// One row of a user-defined formula of l, the log-probability of the label, and of further
/// targets: returns Formula::value(l, more...).
///
/// shape: x (N logits), label -> gradient (N) = scale * slope(l) * (1 at the label - softmax(x))
/// law:   label -1: loss 0 and gradient 0
template <class Formula, int N, class T, class... More>
[[gnu::flatten]] PIPE_ONE_COPY double label_loss_row(T const* x, int label, T scale,
                                                     bool wants_gradient, T* e, T* gradient,
                                                     More... more) {
  if (label < 0) {
    if (wants_gradient) std::memset(gradient, 0, sizeof(T) * N);
    return 0;
  }
  constexpr int L = lanes<T>, whole = N / L * L;
  auto const [sum, whole_log] = exponentials_of<N>(x, e);
  T const l = T(double(x[label]) - whole_log);
  if (wants_gradient) {
    T const slope = loss_slope_of<Formula>(l, more...) * scale, factor = slope / sum;
    for (int i = 0; i < whole; i += L) save(gradient + i, -(load(e + i) * factor));
    for (int i = whole; i < N; ++i) gradient[i] = -(e[i] * factor);
    gradient[label] += slope;
  }
  return double(loss_value_of<Formula>(l, more...));
}

/// One row of squared error: returns sum of (x - target)^2.
///
/// shape: x, target (n) -> gradient (n) = 2 (x - target) * scale; gradient may be x
/// law:   the sum is over ascending i, in double
template <class T>
PIPE_ONE_COPY double squared_error_row(int n, T const* x, T const* target, T scale,
                                       bool wants_gradient, T* gradient) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    T const d = x[i] - target[i];
    sum += double(d) * double(d);
    if (wants_gradient) gradient[i] = T(2) * d * scale;
  }
  return sum;
}

/// The loss of group G of P, row by row.
template <class P, int G>
struct loss_rows : group_rows<P, G> {
  using base = group_rows<P, G>;
  using base::g, base::rows, base::planned_rows, base::own_rows;
  using typename base::T, typename base::V, typename base::args;
  static constexpr bool is_weighted = g.in[detail::op::loss_weights] >= 0;
  static constexpr bool is_further = detail::is_further_loss(g.leaf, typename P::leaves{});

  /// Rows for numbers in the workspace, behind what a loss keeps there: a row, or five numbers for
  /// each row of a contrast. The second row is that of the gradient.
  static T* room(args const& a) {
    constexpr long kept =
        g.anchor == op_kind::contrast ? detail::padded<T>(5 * planned_rows) : g.columns;
    return static_cast<T*>(a.workspace) + kept;
  }
  /// Row r of what the loss reads, in place or in the workspace.
  static T const* row_of_input(args const& a, extent r) {
    return base::row_of(a, g.in[0], r, g.columns, room(a));
  }
  /// The place of a row's gradient: `gradient`, or in the workspace.
  static T* gradient_row([[maybe_unused]] args const& a, [[maybe_unused]] V* gradient) {
    if constexpr (in_place<T, V>)
      return gradient;
    else
      return room(a) + g.columns;
  }
  /// a.loss[r] = loss_of(r, scale, gradient) times the row's weight, where loss_of writes the
  /// gradient times `scale`. Rows of absent samples have loss 0 and gradient 0.
  template <class Loss>
  static void each_loss(args const& a, Loss const& loss_of) {
    extent valid = a.valid_samples < P::samples ? extent(a.valid_samples) * g.rows : planned_rows;
    if constexpr (takes_lengths<P>)
      if (a.segments != nullptr) valid = rows(a);
    part_range const own = own_rows(a);
    double* losses = a.loss;
    T scale = a.loss_scale;
    if constexpr (is_further) {
      if (a.further == nullptr) return;  // inference, which has no labels
      detail::further_loss const& mine = *a.further->find(g.leaf);
      losses += extent(mine.rows_before) * P::samples;
      scale *= T(mine.factor);
    }
    for (extent r = own.begin; r < own.end; ++r) {
      V* const gradient = a.template values<V>(g.out[0]) + r * g.columns;
      if (r < valid) {
        T const weight =
            is_weighted ? a.at(is_weighted ? g.in[detail::op::loss_weights] : 0)[r] : T(1);
        T* const made = gradient_row(a, gradient);
        double const loss = loss_of(r, is_weighted ? scale * weight : scale, made);
        if constexpr (!in_place<T, V>)
          if (a.wants_gradient) convert_row(made, g.columns, gradient);
        losses[r] = is_weighted ? double(weight) * loss : loss;
      } else {
        losses[r] = 0;
      }
      if (r >= valid && a.wants_gradient)
        std::memset(gradient, 0, sizeof(V) * std::size_t(g.columns));
    }
  }
  /// Calls row with a pointer to element `at` of each further target.
  template <class Row>
  static double with_targets(args const& a, extent at, Row const& row) {
    constexpr int first = detail::op::first_target;
    if constexpr (g.in[first + 2] >= 0)
      return row(a.at(g.in[first]) + at, a.at(g.in[first + 1]) + at, a.at(g.in[first + 2]) + at);
    else if constexpr (g.in[first + 1] >= 0)
      return row(a.at(g.in[first]) + at, a.at(g.in[first + 1]) + at);
    else if constexpr (g.in[first] >= 0)
      return row(a.at(g.in[first]) + at);
    else
      return row();
  }
};

/// Cross entropy of logits and labels, or a formula of a label's log-probability, with its
/// gradient.
///
/// shape: logits (rows, V), labels (rows), further targets and weights (rows) -> a.loss (rows),
///        dlogits (rows, V)
/// work:  parts own rows; the runtime adds the losses of rows in order, so the number of parts
///        changes no bit
/// cost:  one exponential per logit; dlogits may be in the memory of the logits
template <>
struct kernel_of<op_kind::cross_entropy> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = loss_rows<P, G>;
    using T = typename k::T;
    k::each_loss(a, [&a](extent r, T scale, T* gradient) {
      constexpr detail::cross_entropy_attributes of = k::g.attributes.cross_entropy();
      T const* const x = k::row_of_input(a, r);
      T* const e = static_cast<T*>(a.workspace);
      int const label = a.ids(k::g.in[1])[r];
      if constexpr (of.term == detail::row_term::formula)
        return k::with_targets(a, r, [&](auto const*... more) {
          using layer = detail::leaf_at<k::g.leaf, typename P::leaves>;
          return label_loss_row<typename layer::formula, k::g.columns, T>(
              x, label, scale, a.wants_gradient, e, gradient, *more...);
        });
      else if constexpr (of.term == detail::row_term::weighted_by_class)
        return weighted_cross_entropy_row<
            typename detail::leaf_at<k::g.leaf, typename P::leaves>::class_weights, k::g.columns,
            T>(x, label, T(of.smoothing), T(of.z_loss), scale, a.wants_gradient, e, gradient);
      else
        return cross_entropy_row<k::g.columns, T>(x, label, T(of.smoothing), T(of.z_loss), scale,
                                                  a.wants_gradient, e, gradient);
    });
  }
};

/// Squared error of every row, with its gradient.
///
/// shape: x, target (rows, C), weights (rows) -> a.loss (rows), dx (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::squared_error> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = loss_rows<P, G>;
    using T = typename k::T;
    k::each_loss(a, [&a](extent r, T scale, T* gradient) {
      return squared_error_row<T>(k::g.columns, k::row_of_input(a, r),
                                  a.at(k::g.in[1]) + r * k::g.columns, scale, a.wants_gradient,
                                  gradient);
    });
  }
};
