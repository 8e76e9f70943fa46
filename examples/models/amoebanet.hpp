// SPDX-License-Identifier: BSL-1.0
//
// AmoebaNet-D(L, D): Real et al., Regularized evolution for image classifier architecture search,
// 2019, as GPipe trained it and torchgpipe has it. L normal cells in three groups, with D filters
// in the first.
#pragma once

#include <type_traits>

#include "parts.hpp"

namespace models {

/// A convolution between its activation and its norm.
template <int F, auto Kernel, class... Options>
using Op = Seq<ReLU, Conv2d<F, Kernel, NoBias, Options...>, BatchNorm>;

/// The operations of a cell with F filters.
template <int F>
using Conv1 = Op<F, 1>;
template <int F, int Steps>
using Conv3 = Seq<Op<F / 4, 1>, Op<F / 4, 3, Stride<Steps>, Padding<1>>, Op<F, 1>>;
template <int F, int Steps>
using Conv7 = Seq<Op<F / 4, 1>, Op<F / 4, Axes<1, 7>, Stride<1, Steps>, Padding<0, 3>>,
                  Op<F / 4, Axes<7, 1>, Stride<Steps, 1>, Padding<3, 0>>, Op<F, 1>>;
template <int Steps>
using Max3 = MaxPool2d<3, Stride<Steps>, Padding<1>>;
template <int Steps>
using Avg3 = AvgPool2d<3, Stride<Steps>, Padding<1>, ExcludePadding>;
/// Half of the size: every second cell, and every second of the image without its first row and
/// column.
template <int F>
using Halve = Seq<ReLU,
                  ConcatOf<Conv2d<F / 2, 1, Stride<2>, NoBias>,
                           Seq<Pad<-1, 1, -1, 1>, Conv2d<F / 2, 1, Stride<2>, NoBias>>>,
                  BatchNorm>;

/// The result of the cell before the last one, "earlier", becomes s1, in the size and with the
/// filters of this cell; that of the last one becomes s0.
template <int F, bool AfterReduction>
using Begin = Seq<Conv1<F>, Stash<"s0">, Recall<"earlier">,
                  std::conditional_t<AfterReduction, Halve<F>, Conv1<F>>, Stash<"s1">>;
/// Around a cell that another one follows, for which the last result is the earlier one.
template <class Cell>
using Then =
    Seq<Stash<"last">, Cell, Stash<"result">, Recall<"last">, Stash<"earlier">, Recall<"result">>;

// [normal]
template <int F, bool AfterReduction>
using Normal =
    Seq<Begin<F, AfterReduction>,                               //
        SumOf<Conv1<F>, Max3<1>>, Residual<Max3<1>>, Conv1<F>,  // s2, s5 and what s6 reads of it
        Stash<"s5">, Recall<"s1">, Avg3<1>, Pop<"s5">, Stash<"s6">,  //
        Recall<"s0">, Conv7<F, 1>, Pop<"s1">, Stash<"s3">,           //
        Recall<"s0">, SumOf<Conv1<F>, Conv7<F, 1>>, Stash<"s4">,     //
        Recall<"s0">, Pop<"s3", Concat>, Pop<"s4", Concat>, Pop<"s6", Concat>>;
// [/normal]
template <int F, bool AfterReduction>
using Reduction =
    Seq<Begin<F, AfterReduction>,                                                            //
        Conv3<F, 2>, Stash<"c3">, Recall<"s1">, MaxPool2d<2>, Stash<"m2">,                   //
        Recall<"s0">, SumOf<MaxPool2d<2>, Max3<2>>, Stash<"s2">,                             //
        Pop<"c3">, Stash<"s3">,                                                              //
        Pop<"m2">, Stash<"s5">,                                                              //
        Recall<"s3">, Conv1<F>, Stash<"c1">, Recall<"s2">, Avg3<1>, Pop<"c1">, Stash<"s6">,  //
        Recall<"s2">, SumOf<Conv7<F, 1>, Max3<1>>,                                           // s4
        Pop<"s5", Concat>, Pop<"s6", Concat>>;

/// N normal cells, the first of which follows a reduction; after the last comes another cell.
template <int N, int F>
using NormalCells = Stack<N, Then<Normal<F, true>>, Then<Normal<F, false>>>;
/// The same at the end of the model.
template <int N, int F>
using LastCells =
    std::conditional_t<(N > 1), Seq<NormalCells<N - 1, F>, Normal<F, false>>, Normal<F, true>>;

/// For 72 cells clang++ needs -fconstexpr-steps=2000000.
template <int L, int D, int Classes = 1000>
  requires(L > 0 && L % 3 == 0 && D > 0 && D % 8 == 0)
struct AmoebaNet
    : Model<Input<224, 224, 3>, Op<D / 4, 3, Stride<2>, Padding<1>>, Stash<"earlier">,
            Then<Reduction<D / 2, false>>, Then<Reduction<D, true>>,  // the stem
            NormalCells<L / 3, D>, Then<Reduction<2 * D, false>>,     //
            NormalCells<L / 3, 2 * D>, Then<Reduction<4 * D, false>>, LastCells<L / 3, 4 * D>,
            AvgPool2d<7>, Flatten, Linear<Classes>, CrossEntropy> {};

using AmoebaNet18x208 = AmoebaNet<18, 208>;
using AmoebaNet18x256 = AmoebaNet<18, 256>;

}  // namespace models
