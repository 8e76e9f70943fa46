// SPDX-License-Identifier: BSL-1.0
//
// Replicas of a pipeline in processes with a device each: sums over some of the processes, and
// trainers, whose bits are those of one process that runs all accumulations.
#include "catch.hpp"

#include "device/device_arrays.hpp"
#include "nccl/alike.hpp"
#include "nccl/resumed_alike.hpp"

#include <pipe/weights/copy_weights.hpp>
#include <pipe/weights/weights.hpp>

#include <limits>
#include <string>
#include <vector>

using namespace pp;
using namespace processes;

namespace {

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
/// Adds up over replicas of `devices` devices each, and compares with the tree.
template <class T>
std::string adds_up(detail::nccl_processes& world, int devices, long room_bytes, long count) {
  int const process = world.process(), replicas = world.processes() / devices;
  detail::local_devices const local{
      {devices, devices}, process % devices, 1, process / devices, replicas};
  cudaStream_t on{};
  cudaStreamCreateWithFlags(&on, cudaStreamNonBlocking);
  std::vector<T> data(std::size_t(count + 1), T(-1)),
      room(std::size_t(room_bytes) / sizeof(T) + 1, T(-1));
  for (long i = 0; i < count; ++i) data[std::size_t(i)] = number<T>(local.replica, i + local.first);
  cuda::replica_sum sums(world.link(), local);
  sums.add_up<T>(data.data(), count, reinterpret_cast<char*>(room.data()), room_bytes, on, &add<T>);
  if (world.link() != nullptr) world.wait(on);
  cudaStreamSynchronize(on);
  cudaStreamDestroy(on);
  for (long i = 0; i < count; ++i) {
    std::vector<T> terms;
    for (int r = 0; r < replicas; ++r) terms.push_back(number<T>(r, i + local.first));
    detail::join_tree(
        replicas, [&](int to, int from) { terms[std::size_t(to)] += terms[std::size_t(from)]; });
    if (data[std::size_t(i)] != terms[0]) return "another sum";
  }
  return data.back() == -1 && room.back() == -1 ? "right" : "written beyond the end";
}

/// A rank alone.
template <class... More>
using Single =
    Pipeline<Followed, on_host::Device, AdamW, MicroBatches<3>, MicroBatchSize<2>, More...>;
/// Two ranks with two chunks each, whose sums come at different times.
template <class... More>
using Woven = Pipeline<Followed, on_host::Device, AdamW, MicroBatches<4>, MicroBatchSize<1>,
                       Stages<4>, Interleaved<2>, Averaging<9, 10>, More...>;

/// Gradients of two pieces, 8.7 MB.
struct Wide : Model<Tokens<17000, 2>, Embedding<128>, Linear<3>, CrossEntropy> {};
template <class... More>
using OfWide = Pipeline<Wide, on_host::Device, SGD, MicroBatches<1>, MicroBatchSize<1>, More...>;

}  // namespace

TEST_CASE("sums over replicas are those of the tree, for any sizes") {
  for (int const n : {1, 2, 3, 4, 6}) {
    fake_nccl::start_anew();
    CHECK(launch(n, [&]() -> std::string {
            gpu.devices = 8;
            detail::nccl_processes world(detail::executor_settings{});
            world.connect(1);
            for (int const devices : {1, 2, 3}) {
              if (n % devices != 0) continue;
              for (long const lines : {5, 7, 40})
                for (long const count : {0, 1, 63, 64, 65, 200, 1000, 3000}) {
                  std::string const of_floats = adds_up<float>(world, devices, lines * 256, count),
                                    of_doubles =
                                        adds_up<double>(world, devices, lines * 256, count);
                  if (of_floats != "right") return of_floats;
                  if (of_doubles != "right") return of_doubles;
                }
            }
            return "right";
          }) == same(n, "right"));
  }
}

TEST_CASE("replicas on GPUs have the bits of one process that runs all accumulations") {
  for (int const n : {1, 2, 4})
    train_alike<Single<GradientAccumulation<4>>, Single<GradientAccumulation<4>, Nccl>>(n);
}
TEST_CASE("gradients of several pieces are added up by replicas on GPUs") {
  fake_nccl::start_anew();
  CHECK(launch(2, []() -> std::string {
          gpu.devices = 8;
          differences found;
          OfWide<GradientAccumulation<4>> one({.seed = 3});
          OfWide<GradientAccumulation<4>, Nccl> many({.seed = 3});
          for (int const samples : {4, 2}) {  // the second replica has some, and none
            laws::sample_batch<OfWide<GradientAccumulation<4>>> const data(samples);
            auto const a = one.step(data.view(samples)),
                       b = many.step(data.view<OfWide<GradientAccumulation<4>, Nccl>>(samples));
            found.expect(a.loss == b.loss && a.gradient_norm == b.gradient_norm, "step");
            found.expect(has_the_parameters(one, many), "parameters");
          }
          return found.first();
        }) == same(2, "right"));
}
TEST_CASE("replicas of several ranks on GPUs have the bits of one process") {
  for (int const n : {2, 4})
    train_alike<Woven<GradientAccumulation<2>>, Woven<GradientAccumulation<2>, Nccl>>(n);
  train_alike<Scaled<GradientAccumulation<4>>, Scaled<GradientAccumulation<4>, Nccl, OffloadState>>(
      4);
  train_alike<Linked<GradientAccumulation<2>>, Linked<GradientAccumulation<2>, Nccl>>(8);
}
TEST_CASE("without GradientAccumulation each replica on a GPU is an accumulation") {
  train_alike<Single<GradientAccumulation<2>>, Single<Nccl>>(2);
  train_alike<Woven<GradientAccumulation<4>>, Woven<Nccl>>(8);
}

TEST_CASE("a replica that is lost ends the runs of the others") {
  fake_nccl::start_anew();
  auto const said = launch(3, [&]() -> std::string {
    gpu.devices = 8;
    using trainer = Single<Nccl>;
    trainer t;
    laws::sample_batch<Single<GradientAccumulation<4>>> const data(1);
    auto const whole = data.view<trainer>(t.batch_samples());
    t.step(whole);
    try {
      t.watch(whole, [](launch_seen const& seen) {
        if (Nccl::process() == 1 && seen.micro_batch == 3 + 2) kill(getpid(), SIGKILL);
      });
    } catch (rank_error const& e) {
      return e.what();
    }
    return "no error";
  });
  CHECK(said[1] == "ended by signal 9");
  for (std::size_t const p : {0u, 2u}) {
    INFO(said[p]);
    CHECK(said[p].find("process 1 was lost: killed") != std::string::npos);
  }
}

TEST_CASE("all replicas reject a step with the text of one process") {
  fake_nccl::start_anew();
  using one = Single<GradientAccumulation<4>, Prefetching>;
  using many = Single<GradientAccumulation<4>, Prefetching, Nccl>;
  for (std::string const& text : launch(2, []() -> std::string {
         gpu.devices = 8;
         one a({.seed = 5});
         many b({.seed = 5});
         differences found;
         auto const text_of = [](auto& trainer, auto const& batch, bool is_prefetched) {
           try {
             if (is_prefetched) trainer.prefetch(batch);
             is_prefetched ? trainer.step(prefetched) : trainer.step(batch);
           } catch (not_finite const& e) {
             return std::string(e.what());
           }
           return std::string("no error");
         };
         for (int i = 0; i < 4; ++i) {
           laws::sample_batch<one> data(1);
           long const at = long(data.inputs.size()) - 3;  // of the last replica
           if (i < 2)
             data.inputs[std::size_t(at)] = std::numeric_limits<float>::quiet_NaN();
           else
             data.labels.back() = 3e38f;  // whose square is not finite
           auto const x = text_of(a, data.view(), i % 2 == 1),
                      y = text_of(b, data.template view<many>(), i % 2 == 1);
           found.expect(x == y && x.find(" rejected") != std::string::npos, x + "; " + y);
         }
         return found.first();
       }))
    CHECK(text == "right");
}

TEST_CASE("a run of replicas on GPUs is saved as that of one process, and resumed") {
  fake_nccl::start_anew();
  temporary_folder const folder;
  CHECK(launch(4, [&] {
          return is_resumed_alike<Scaled<GradientAccumulation<2>>,
                                  Scaled<GradientAccumulation<2>, Nccl, OffloadState>,
                                  Scaled<GradientAccumulation<2>, Nccl>>(folder);
        }) == same(4, "right"));
}

TEST_CASE("replicas take their accumulations of arrays on the GPU") {
  fake_nccl::start_anew();
  CHECK(launch(2, []() -> std::string {
          gpu.devices = 8;
          cudaSetDevice(Nccl::process());
          using one = Single<GradientAccumulation<2>>;
          using many = Single<Nccl>;
          one a({.seed = 3});
          many b({.seed = 3});
          differences found;
          for (int i = 0; i < 2; ++i) {
            laws::sample_batch<one> const data(std::uint64_t(i) + 1);
            long const samples = one::samples - 4 * i;
            on_host::device_copy<many> const device(data.template view<many>(samples));
            found.expect(
                laws::same_bits(a.step(data.view(samples)).loss, b.step(device.view()).loss),
                "loss");
            found.expect(has_the_values(a, b), "parameters");
            std::vector<float> u(std::size_t(samples * one::outputs_per_sample));
            a.forward(data.view(samples), u);
            on_host::device_array<float> v(u.size());
            b.forward(device.view(), v.view());
            found.expect(laws::same_numbers(v.read(), u), "outputs");
          }
          return found.first();
        }) == same(2, "right"));
}

TEST_CASE("the plan of a pipeline between GPUs has what replicas exchange") {
  using one = Single<>;
  using many = Single<Nccl>;
  CHECK(many::plan.exchange_bytes_of(0, 2) > 0);
  CHECK(many::plan.rank_bytes_of(0, 4) >= one::plan.rank_bytes_of(0, 1) + (128L << 10));
  CHECK(explain<many>().find("replicas: each of n sends 2 (n - 1) / n times the gradients") !=
        std::string::npos);
}

TEST_CASE("weights and drawings of replicas on GPUs are those of all processes") {
  fake_nccl::start_anew();
  temporary_folder const folder;
  CHECK(launch(4, [&]() -> std::string {
          gpu.devices = 8;
          differences found;
          Woven<> one({.seed = 3});
          using trainer = Woven<Nccl>;
          trainer many({.seed = 4, .runtime = {.timeline = true}});
          copy_weights(one, many);
          found.expect(has_the_values(one, many), "copied weights");
          std::string const path = folder.file("weights");
          save_weights(many, path);
          trainer other({.seed = 6});
          load_weights(other, path);
          found.expect(has_the_values(one, other), "loaded weights");
          laws::sample_batch<Woven<GradientAccumulation<2>>> const data(1);
          many.step(data.view<trainer>(many.batch_samples()));
          executed_run const run = gather_executed(many);
          found.expect(run.replicas == 2 && run.ranks == 2 && run.processes == 4, "size");
          for (std::size_t row = 0; row < run.rows.size(); ++row)
            found.expect(int(run.rows[row].size()) == trainer::compiled::table().size(int(row % 2)),
                         "actions of a rank");
          return found.first();
        }) == same(4, "right"));
}
