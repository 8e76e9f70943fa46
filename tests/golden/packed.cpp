// SPDX-License-Identifier: BSL-1.0
//
// Packed documents against PyTorch, where one sequence of all documents has a block-diagonal mask:
// outputs, loss and all gradients. The models are those of packed_cases() in write_golden.py.
#include "golden/record.hpp"

#include <pipe/data/token_documents.hpp>

using namespace pp;

namespace {

template <class Layer>
struct Packed : Model<Tokens<13, 8>, Embedding<12>, Positions, Residual<LayerNorm, Layer>,
                      Linear<13>, CrossEntropy> {};

template <class Layer>
void check(std::string const& name) {
  using trainer =
      Pipeline<Packed<Layer>, PortableHost, MicroBatches<2>, MicroBatchSize<2>, Lengths<4>>;
  golden::record const theirs("packed", name);
  std::vector<int> const ids = theirs.ids("input"), lengths = theirs.ids("lengths");
  token_documents const documents(ids, lengths, {.context = 8});
  // A document of one token has no label: PyTorch's last one, which the mask hides from the others.
  CHECK(documents.lengths.size() == lengths.size() - 1);
  trainer t;
  auto const named = detail::named_parameters(t);
  theirs.read(std::vector(named.begin(), named.end()), "weight");
  t.parameters_changed();
  // The whole sequence, with the document without a label.
  std::vector<int> const labels = theirs.ids("label"), counts{2, 3};
  typename trainer::batch all{ids, labels};
  all.set_lengths(lengths).set_micro_batches(counts);
  std::vector<float> output(ids.size() * 13);
  t.forward(all, output);
  golden::check_gradients<float>(theirs, output, t.gradients(all).loss, t.parameters(), named,
                                 golden::tolerance);
  // As `batches` packs it: one mini-batch of two micro-batches.
  int count = 0;
  for (auto const& packed : batches<trainer>(documents, {.packed = true})) {
    CHECK(packed.micro_batches.size() == 2);
    CHECK(packed.inputs.size() == ids.size() - 1);
    golden::check_gradients<float>(theirs, output, t.gradients(packed).loss, t.parameters(), named,
                                   golden::tolerance);
    ++count;
  }
  CHECK(count == 1);
}

}  // namespace

TEST_CASE("packed documents are PyTorch's with a block-diagonal mask", "[golden]") {
  check<Attention<3>>("causal");
  check<Attention<2, NotCausal>>("encoder");
  check<Attention<6, KeyValueHeads<3>, RoPE<500000>>>("rope_grouped");
}
TEST_CASE("packed documents with rules for scores are PyTorch's with a block-diagonal mask",
          "[golden]") {
  check<Attention<3, KeyValueHeads<1>, HeadSize<6>, RoPE<>, Window<3>>>("window");
  check<Attention<6, ALiBi>>("alibi");
  check<Attention<2, Prefix<3>, SoftCap<1, 2>>>("capped_prefix");
}
