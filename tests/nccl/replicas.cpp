// SPDX-License-Identifier: BSL-1.0
//
// Replicas of a pipeline in processes with a device each: sums over some of the processes, and
// trainers, whose bits are those of one process that runs all leaves.
#include <catch2/catch.hpp>

#include "device/centered.hpp"
#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

#include <pipe/nccl.cuh>

#include "nccl/processes.hpp"

#include <string>
#include <vector>

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;

std::vector<std::string> same(int n, char const* text) {
  return std::vector<std::string>(std::size_t(n), text);
}

/// Numbers whose sum depends on the order.
template <class T>
T number(int replica, long i) {
  return T(1) / T(1 + replica * 7 + i % 13) * (i % 3 == 0 ? 1e4f : 1);
}
template <class T>
void add(long n, T* to, T const* from, cudaStream_t on) {
  on->put([=] {
    for (long i = 0; i < n; ++i) to[i] += from[i];
  });
}
/// Adds up over replicas with so many devices each, and compares with the tree.
template <class T>
std::string adds_up(detail::nccl_processes& world, int devices, long room_bytes, long count) {
  int const process = world.process(), replicas = world.processes() / devices;
  detail::local_devices const local{
      {devices, devices}, process % devices, 1, process / devices, replicas};
  cudaStream_t on{};
  cudaStreamCreateWithFlags(&on, cudaStreamNonBlocking);
  std::vector<T> data(std::size_t(count + 1), T(-1)), room(std::size_t(room_bytes) / sizeof(T) + 1, T(-1));
  for (long i = 0; i < count; ++i)
    data[std::size_t(i)] = number<T>(local.replica, i + local.first);
  cuda::replica_sums sums(world.link(), local);
  sums.add_up<T>(data.data(), count, reinterpret_cast<char*>(room.data()), room_bytes, on, &add<T>);
  if (world.link() != nullptr) world.wait(on);
  cudaStreamSynchronize(on);
  cudaStreamDestroy(on);
  for (long i = 0; i < count; ++i) {
    std::vector<T> terms;
    for (int r = 0; r < replicas; ++r) terms.push_back(number<T>(r, i + local.first));
    detail::join_leaves(replicas, [&](int to, int from) {
      terms[std::size_t(to)] += terms[std::size_t(from)];
    });
    if (data[std::size_t(i)] != terms[0]) return "another sum";
  }
  return data.back() == -1 && room.back() == -1 ? "right" : "written beyond the end";
}

/// Two layers of statistics, whose sums are added up, too; four stages.
struct Followed : Model<Input<2, 3>, Custom<on_host::Centered>, Linear<4>, Tanh,
                        Custom<on_host::Centered>, Linear<2>, MSE> {};
template <class... More>
using Leaf = Pipeline<Followed, on_host::Device, AdamW, MicroBatches<3>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("sums over replicas are those of the tree, for any sizes") {
  for (int const n : {1, 2, 3, 4, 6}) {
    fake_nccl::start_anew();
    CHECK(processes::launch(n, [&]() -> std::string {
            gpu.devices = 8;
            detail::nccl_processes world(detail::executor_settings{});
            world.connect(1);
            for (int const devices : {1, 2, 3}) {
              if (n % devices != 0) continue;
              for (long const lines : {5, 7, 40})
                for (long const count : {0, 1, 63, 64, 65, 200, 1000, 3000}) {
                  std::string const of_floats = adds_up<float>(world, devices, lines * 256, count),
                                    of_doubles = adds_up<double>(world, devices, lines * 256, count);
                  if (of_floats != "right") return of_floats;
                  if (of_doubles != "right") return of_doubles;
                }
            }
            return "right";
          }) == same(n, "right"));
  }
}

TEST_CASE("gradients and the loss of replicas are added in a balanced binary tree") {
  for (int const n : {2, 4}) {
    fake_nccl::start_anew();
    CHECK(processes::launch(n, [&]() -> std::string {
            gpu.devices = 8;
            Leaf<> one({.seed = 5});
            Leaf<Nccl> many({.seed = 5});
            laws::sample_batch<Leaf<SumIn<4>>> const data(3);
            std::vector<std::vector<float>> leaves;
            std::vector<double> losses;
            int const each = Leaf<>::samples;
            for (int i = 0; i < n; ++i) {
              auto const all = data.template view<Leaf<>>(n * each);
              typename Leaf<>::batch const part{
                  std::span(all.inputs).subspan(std::size_t(i * each * 6), std::size_t(each * 6)),
                  std::span(all.labels).subspan(std::size_t(i * each * 4), std::size_t(each * 4))};
              losses.push_back(one.gradients(part).loss / n);
              leaves.push_back(laws::snapshot(one).gradients);
            }
            auto const found = many.gradients(data.template view<Leaf<Nccl>>(n * each));
            detail::join_leaves(n, [&](int to, int from) {
              losses[std::size_t(to)] += losses[std::size_t(from)];
              for (std::size_t k = 0; k < leaves[0].size(); ++k)
                leaves[std::size_t(to)][k] += leaves[std::size_t(from)][k];
            });
            for (float& g : leaves[0]) g /= float(n);
            if (!laws::same_numbers(laws::snapshot(many).gradients, leaves[0]))
              return "other gradients";
            return laws::same_bits(found.loss, losses[0]) ? "right" : "another loss";
          }) == same(n, "right"));
  }
}
