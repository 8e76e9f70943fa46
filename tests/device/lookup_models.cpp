// SPDX-License-Identifier: BSL-1.0
//
// Models with tables through the CUDA kernel bodies of lookups and their gradients, and on the
// engine with a library's sort between them.
#include <algorithm>
#include <vector>

#include "cuda/agreement.hpp"
#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/every_layer.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

struct Words
    : Model<Tokens<11, 5>, Embedding<7>, Positions, Tanh, Dropout<1, 5>, Linear<5>, CrossEntropy> {
  static constexpr bool pads = true;
};

/// A library whose sort is that of the standard library. `MoreBytes`: than the plan has.
template <long MoreBytes>
struct StableSort {
  struct row_sort {
    static constexpr char const* name = "std::stable_sort";
    static inline long calls = 0;
    static constexpr int nodes(int) { return 1; }
    static std::size_t temporary_bytes(int rows, int) {
      return std::size_t(cuda::sort_bytes(rows) + MoreBytes);
    }
    static void enqueue(cuda::sort_call const& c, cudaStream_t on) {
      on->put([c] {
        ++calls;
        std::fill_n(static_cast<unsigned char*>(c.temporary), c.temporary_bytes, 0x3c);
        std::vector<int> order(std::size_t(c.rows));
        for (int r = 0; r < c.rows; ++r) order[std::size_t(r)] = r;
        std::stable_sort(order.begin(), order.end(),
                         [&](int i, int j) { return c.keys[i] < c.keys[j]; });
        for (int r = 0; r < c.rows; ++r) {
          c.sorted_keys[r] = c.keys[order[std::size_t(r)]];
          c.sorted_values[r] = c.values[order[std::size_t(r)]];
        }
      });
    }
  };
};
template <class... Options>
using Trained = Pipeline<laws::Everything, on_host::Device, AdamW, MicroBatches<3>,
                         MicroBatchSize<2>, Options...>;

}  // namespace

TEST_CASE("lookups agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<Words, MicroBatches<3>, MicroBatchSize<2>>();
  struct Wide : Model<Tokens<300, 9>, Embedding<24>, GELUTanh, Linear<8>, CrossEntropy> {};
  on_host::agrees_with_the_host<Wide, MicroBatches<2>, MicroBatchSize<5>>();
}

TEST_CASE("a library's sort changes no bit, by streams and in graphs", "[cuda]") {
  using library = StableSort<0>;
  library::row_sort::calls = 0;
  laws::train_alike_from_the_start<Trained<>, Trained<library, Stages<2>>>(7, 3, 1);
  // gradients() and step() on mini-batches of 3, 3 and 2 micro-batches.
  CHECK(library::row_sort::calls == 2 * (3 + 3 + 2));
  using Catch::Matchers::Contains;
  CHECK_THAT(Trained<library>().runs_on(), Contains(", std::stable_sort for 1 of 1 sorts"));
}
TEST_CASE("a library sorts the ids of bags too", "[cuda]") {
  using library = StableSort<0>;
  using own = Pipeline<laws::EveryBag<PaddingIndex<3>>, on_host::Device, AdamW, MicroBatches<3>,
                       MicroBatchSize<2>>;
  using by_library = Pipeline<laws::EveryBag<PaddingIndex<3>>, on_host::Device, AdamW,
                              MicroBatches<3>, MicroBatchSize<2>, library>;
  library::row_sort::calls = 0;
  laws::train_alike_from_the_start<own, by_library>(7, 2);
  CHECK(library::row_sort::calls > 0);
}

TEST_CASE("a library that asks for more memory than the plan has sorts nothing", "[cuda]") {
  using greedy = StableSort<1>;
  laws::train_alike_from_the_start<Trained<OwnSort>, Trained<greedy>>(7, 2);
  CHECK(greedy::row_sort::calls == 0);
  using Catch::Matchers::Contains;
  CHECK_THAT(Trained<greedy>().runs_on(), Contains(", std::stable_sort for 0 of 1 sorts"));
  CHECK_THAT(Trained<>().runs_on(), !Contains("sorts"));
}
