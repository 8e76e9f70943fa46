// SPDX-License-Identifier: BSL-1.0
//
// The types of examples/models, narrow ones, with files as the hubs have them: what zoo.py wrote is
// loaded through the maps of names, and outputs agree.
#include "../../examples/models/alexnet.hpp"
#include "../../examples/models/bert.hpp"
#include "../../examples/models/hub/bert.hpp"
#include "../../examples/models/hub/resnet.hpp"
#include "../../examples/models/hub/unet.hpp"
#include "../../examples/models/hub/vision_transformer.hpp"
#include "../../examples/models/resnet.hpp"
#include "../../examples/models/unet.hpp"
#include "../../examples/models/vision_transformer.hpp"
#include "golden/record.hpp"

using namespace pp;

namespace {

template <class M>
void check(std::string const& name, name_map const& names = {}) {
  using Trainer = Pipeline<M, PortableHost, MicroBatchSize<2>>;
  golden::record const theirs("zoo", name);
  golden::batches<Trainer> const data(theirs);
  Trainer trainer;
  load_weights(trainer, PIPE_TESTS_FOLDER "/golden/zoo/" + name + ".safetensors",
               load_policy::strict, names);
  std::vector<float> output(std::size_t(data.samples() * Trainer::outputs_per_sample));
  trainer.forward(data[0], output);
  golden::check_near(name + ": output", output, theirs.numbers<double>("output"));
}

}  // namespace

TEST_CASE("files of hubs are loaded through their maps of names", "[golden]") {
  using namespace models;
  check<AlexNetTower<2, 8, 5, Input<111, 63, 3>>>("alexnet");
  using Shallow = ShallowResNet<2, 2, 2, 2, 2, 5, Input<32, 48, 3>>;
  check<Shallow>("resnet_basic", hub::torchvision_resnet<Shallow>());
  using Deep = DeepResNet<2, 2, 1, 1, 1, 5, Input<32, 48, 3>>;
  check<Deep>("resnet_bottleneck", hub::torchvision_resnet<Deep>());
  using Pixels = BatchNormUNet<1, 2, Input<16, 32, 3>>;
  check<Pixels>("unet", hub::milesial_unet<Pixels>());
  using ViT = VisionTransformer<2, 12, 3, 4, 5, Input<12, 12, 3>>;
  check<ViT>("vit", hub::torchvision_vit<ViT>());
  check<ViT>("vit_huggingface", hub::huggingface_vit<ViT>());
  using Text = Bert<2, 12, 3, 40, 7, 3>;
  check<Text>("bert", hub::huggingface_bert<Text>());
}

TEST_CASE("norms of older files are scaled by gamma and shifted by beta", "[golden]") {
  auto const names = models::hub::huggingface_bert<models::BertBase>("gamma", "beta");
  std::vector<std::string> here;
  for (auto const& p : detail::parameter_names<models::BertBase>()) here.push_back(p.name);
  std::vector<std::string> const there = detail::first_names(detail::sources_there(here, names));
  CHECK(std::ranges::find(there, "bert.embeddings.LayerNorm.gamma") != there.end());
  CHECK(std::ranges::find(there, "bert.encoder.layer.11.output.LayerNorm.beta") != there.end());
}
