// SPDX-License-Identifier: BSL-1.0
//
// Laws of CUB's sort behind the gradients of tables on a GPU: it leaves what our own kernels leave,
// and training has the same bits, by streams and as graphs. Compiled wherever nvcc is; run wherever
// a GPU is.
#include "catch.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

#ifdef CUB_VERSION
#error "a program that does not ask for CUB includes it"
#endif
struct GPT;
// [cub]
#include <pipe/cub_sort.cuh>
#include <pipe/pipe.hpp>

using namespace pp;
using Trainer = Pipeline<GPT, AdamW, Cuda, CubSort>;
// [/cub]
using namespace pp::detail;

namespace {

/// The gradient of a table.
template <class T, int Rows, int Vocabulary, int Columns>
struct one_gradient {
  using element = T;
  using leaves = layers<>;
  static constexpr int samples = 1;
  static constexpr group group_at(int) {
    group g;
    g.anchor = op_kind::lookup_gradient;
    g.rows = Rows, g.columns = Columns, g.attributes = lookup_attributes{Vocabulary};
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2, g.operands = 3;
    return g;
  }
};

template <class T>
std::vector<T> downloaded(void const* from, std::size_t count) {
  std::vector<T> all(count);
  pp::cuda::check(cudaMemcpy(all.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost),
                  "download");
  return all;
}
/// The gradient, twice in the same place; ids in order; their rows.
struct outcome {
  std::vector<float> gradient;
  std::vector<int> keys, rows;
};

template <class P, class Launch, class IdOf>
outcome outcome_of(Launch const& launch, IdOf id_of) {
  using T = typename P::element;
  using common = pp::cuda::lookup_gradient<P, 0>;
  constexpr std::size_t rows = std::size_t(common::rows), columns = std::size_t(common::columns),
                        table = std::size_t(common::bound) * columns;
  std::vector<T> dy(rows * columns);
  std::vector<int> ids(rows);
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = T(float(int(i * 37 % 101) - 50) / 7);
  for (std::size_t r = 0; r < rows; ++r) ids[r] = id_of(int(r));
  pp::cuda::device_buffer const given(long(dy.size() * sizeof(T))), where(long(rows * sizeof(int))),
      made(long(table * sizeof(float))),
      workspace(std::max(pp::cuda::workspace_of(pp::cuda::lowered<P, 0>{}),
                         pp::cuda::sort_workspace_of<P, 0, pp::cuda::cub_sort>()));
  pp::cuda::check(
      cudaMemcpy(given.data(), dy.data(), dy.size() * sizeof(T), cudaMemcpyHostToDevice), "upload");
  pp::cuda::check(cudaMemcpy(where.data(), ids.data(), rows * sizeof(int), cudaMemcpyHostToDevice),
                  "upload");
  pp::cuda::arguments a;
  a.workspace = workspace.data();
  void* const operands[] = {given.data(), where.data(), made.data()};
  pp::cuda::stream const on;
  pp::cuda::check(cudaDeviceSynchronize(), "upload");
  for (bool const again : {false, true}) {
    a.accumulate = again;
    launch(a, operands, on);
  }
  pp::cuda::check(cudaStreamSynchronize(on), "the gradient of a table");
  return {downloaded<float>(made.data(), table),
          downloaded<int>(common::order::keys(workspace.data()), rows),
          downloaded<int>(common::order::rows(workspace.data()), rows)};
}

/// CUB's sort and ours leave the same, which is what a stable sort leaves.
template <class T, int Rows, int Vocabulary, int Columns, class IdOf>
void sorts_alike(IdOf id_of) {
  using P = one_gradient<T, Rows, Vocabulary, Columns>;
  using lowering = pp::cuda::sort_lowering<P, 0>;
  static_assert(pp::cuda::is_for_library_sort<P, 0, pp::cuda::cub_sort>());
  // What the plan has is enough.
  REQUIRE(pp::cuda::cub_sort::temporary_bytes(lowering::rows, lowering::bits) <=
          std::size_t(lowering::temporary_bytes));
  pp::cuda::prepare_kernels(pp::cuda::lowered<P, 0>{});
  pp::cuda::prepare_kernels(typename lowering::before{});
  outcome const own = outcome_of<P>(cuda_group{&pp::cuda::launch_group<P, 0>, nullptr}, id_of);
  outcome const cub = outcome_of<P>(
      cuda_group{&pp::cuda::launch_group_by_sort<P, 0, pp::cuda::cub_sort>, nullptr}, id_of);
  std::vector<int> rows(std::size_t{Rows});
  auto const key = [&](int r) { return id_of(r) < 0 ? Vocabulary : id_of(r); };
  for (int r = 0; r < Rows; ++r) rows[std::size_t(r)] = r;
  std::stable_sort(rows.begin(), rows.end(), [&](int a, int b) { return key(a) < key(b); });
  CHECK(cub.rows == rows);
  CHECK(own.rows == rows);
  CHECK(cub.keys == own.keys);
  CHECK(cub.gradient.size() == std::size_t{Vocabulary} * Columns);
  CHECK(std::memcmp(cub.gradient.data(), own.gradient.data(),
                    own.gradient.size() * sizeof(float)) == 0);
}

int any_of(int r, int bound) {
  return int(math::random_block(9, 1, std::uint64_t(r)).word[0] % unsigned(bound));
}

struct NoTable : Model<Input<4>, Linear<3>, MSE> {};

template <class... Options>
using Trained =
    Pipeline<laws::Everything, Cuda, AdamW, MicroBatches<4>, MicroBatchSize<2>, Options...>;

}  // namespace

TEST_CASE("CUB's sort leaves what our own leaves", "[gpu]") {
  sorts_alike<float, 1, 1, 1>([](int) { return 0; });
  sorts_alike<bf16, 700, 130, 8>([](int r) { return r % 5 < 3 ? 64 : any_of(r, 130) - 1; });
  sorts_alike<float, 700, 300, 4>([](int) { return -1; });
  // More rows than one block takes: passes of 8 bits, 1, 2 and 3 of them.
  sorts_alike<float, 9001, 200, 4>([](int r) { return r % 3 == 0 ? 199 : any_of(r, 201) - 1; });
  sorts_alike<fp16, 20000, 50257, 4>([](int r) { return any_of(r / 2, 50257); });
  sorts_alike<float, 9001, 70000, 1>([](int r) { return r % 7 == 0 ? -1 : 69999 - r; });
}

TEST_CASE("training has the same bits by CUB's sort", "[gpu]") {
  laws::train_alike_from_the_start<Trained<>, Trained<CubSort>>(7, 3, 3);
  laws::train_alike_from_the_start<Trained<OwnSort>, Trained<CubSort, ZeroBubbleH1, Stages<4>>>(
      7, 3, 3);
}

TEST_CASE("a trainer says who sorts", "[gpu]") {
  using Catch::Matchers::Contains;
  CHECK_THAT(Trained<CubSort>().runs_on(), Contains(", CUB for 1 of 1 sorts"));
  CHECK_THAT(Trained<>().runs_on(), !Contains("sorts"));
  using none = Pipeline<NoTable, Cuda, CubSort, MicroBatches<2>>;
  CHECK_THAT(none().runs_on(), !Contains("sorts"));
}
