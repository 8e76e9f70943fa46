// SPDX-License-Identifier: BSL-1.0
//
// The types of examples/models, narrow ones, with files as the hubs have them: what zoo.py wrote is
// loaded through the maps of names, and outputs agree.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

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

/// The names in a hub's file of M, of joined tensors the first.
template <class M>
std::set<std::string> names_there(name_map const& names) {
  detail::row_list<detail::kept_text> here;
  for (auto const& p : detail::parameter_names<M>()) here.push_back(p.name);
  std::set<std::string> there;
  for (std::string_view const name : detail::first_names(detail::sources_there(here, names)))
    there.emplace(name);
  return there;
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
  using models::BertBase;
  auto const there =
      names_there<BertBase>(models::hub::huggingface_bert<BertBase>("gamma", "beta"));
  CHECK(there.contains("bert.embeddings.LayerNorm.gamma"));
  CHECK(there.contains("bert.encoder.layer.11.output.LayerNorm.beta"));
}

TEST_CASE("stages of a residual network that are a single block have their names", "[golden]") {
  using Single = models::ShallowResNet<1, 1, 2, 1, 2, 5, Input<32, 48, 3>>;
  auto const there = names_there<Single>(models::hub::torchvision_resnet<Single>());
  for (std::string const first : {"layer1.0.conv1.weight", "layer2.0.downsample.0.weight"})
    CHECK(there.contains(first));
  CHECK(there.contains("layer3.1.bn2.bias"));
  CHECK(std::ranges::none_of(there, [](std::string const& name) {
    return name.starts_with("layer4.") && !name.starts_with("layer4.0.");
  }));
  using Deep = models::DeepResNet<1, 1, 1, 1, 1, 5, Input<32, 48, 3>>;
  CHECK(names_there<Deep>(models::hub::torchvision_resnet<Deep>()).contains("layer3.0.bn3.bias"));
}
