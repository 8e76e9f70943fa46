// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints over the engine for a GPU: its runs are resumed there bit for bit, and those of the
// host are, with every state, what they were.
#include <pipe/checkpoint/optimizer_state.hpp>

#include "device/device.hpp"
#include "laws/centered.hpp"
#include "laws/resume_law.hpp"

using namespace pp;

namespace {

struct Run : Model<Tokens<7, 4>, Named<"table", Embedding<6>>, Positions, Dropout<1, 5>,
                   Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>, Frozen<LayerNorm>,
                   Tied<"table">, CrossEntropy> {};
template <class Backend, class Optimizer, class... More>
using Of = Pipeline<Run, Backend, Optimizer, Averaging<9, 10>, MicroBatches<2>, MicroBatchSize<2>,
                    More...>;
using on_host::Device;

/// A run that begins in A goes on in B, back in A, and is the same in both.
template <class A, class B>
void moves(int accumulated) {
  temporary_folder const folder;
  A a(laws::settings_of<A>(1));
  B b(laws::settings_of<B>(2));
  laws::sample_batch<A> const data(3);
  a.step(data.view());
  b.step(data.template view<B>());
  for (int i = 0; i < accumulated; ++i) laws::accumulate(a, 4);
  a.save(folder.file("a"));
  b.load(folder.file("a"));
  b.save(folder.file("b"));
  CHECK(same_content(folder.file("a"), folder.file("b")));
  b.step(data.template view<B>());
  b.save(folder.file("b"));
  a.load(folder.file("b"));
  a.save(folder.file("a"));
  CHECK(same_content(folder.file("a"), folder.file("b")));
}

/// Optimizer state goes from A to B, which then steps from there, and back.
template <class A, class B>
void hands_over() {
  temporary_folder const folder;
  A a(laws::settings_of<A>(1));
  B b(laws::settings_of<B>(2));
  laws::sample_batch<A> const data(3);
  a.step(data.view());
  b.step(data.template view<B>());
  save_optimizer_state(a, folder.file("a"));
  load_optimizer_state(b, folder.file("a"));
  save_optimizer_state(b, folder.file("b"));
  CHECK(same_content(folder.file("a"), folder.file("b")));
  b.step(data.template view<B>());
  save_optimizer_state(b, folder.file("b"));
  CHECK_FALSE(same_content(folder.file("a"), folder.file("b")));
  load_optimizer_state(a, folder.file("b"));
  save_optimizer_state(a, folder.file("a"));
  CHECK(same_content(folder.file("a"), folder.file("b")));
  CHECK(a.steps() == 2);
}

}  // namespace

TEST_CASE("optimizer state goes from the host to a GPU and back", "[cuda]") {
  hands_over<Of<PortableHost, AdamW>, Of<Device, AdamW, Stages<3>, OffloadState>>();
  hands_over<Of<Device, AdamW, Stages<2>>, Of<PortableHost, AdamW>>();
}
TEST_CASE("a run on a GPU is resumed under another cut", "[cuda]") {
  laws::resumes<Of<Device, AdamW>, Of<Device, AdamW, Stages<3>, OffloadState>>(1);
}
TEST_CASE("a run with a scaled loss is resumed", "[cuda]") {
  using scaled = Of<Device, AdamW, FP16, Stages<2>>;
  laws::resumes<scaled, scaled>(1);
}
TEST_CASE("a run moves from the host to a GPU and back", "[cuda]") {
  moves<Of<PortableHost, AdamW>, Of<Device, AdamW, Stages<3>, OffloadState>>(2);
}
