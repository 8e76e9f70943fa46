// SPDX-License-Identifier: BSL-1.0
#include "alexnet.hpp"
#include "hub/resnet.hpp"
#include "hub/unet.hpp"
#include "planned_model.hpp"
#include "resnet.hpp"
#include "unet.hpp"

// The trained numbers as published.
namespace models {

static_assert(parameters_of<AlexNet>() == 60'965'224);
static_assert(parameters_of<AlexNetOneTower>() == 61'100'840);
static_assert(parameters_of<ShallowResNet<1, 1, 1, 1>>() == 5'418'792);
static_assert(parameters_of<ResNet18>() == 11'689'512);
static_assert(parameters_of<ResNet34>() == 21'797'672);
static_assert(parameters_of<ResNet50>() == 25'557'032);
static_assert(parameters_of<ResNet101>() == 44'549'160);
static_assert(parameters_of<ResNet152>() == 60'192'808);
static_assert(parameters_of<WideResNet50>() == 68'883'240);
static_assert(parameters_of<WideResNet101>() == 126'886'696);
static_assert(parameters_of<ResNeXt50>() == 25'028'904);
static_assert(parameters_of<Wrn28x10>() == 36'479'194);
static_assert(parameters_of<WideResNet<28, 10, 100>>() == 36'536'884);
static_assert(parameters_of<WideResNet<40, 4, 10>>() == 8'949'210);
static_assert(parameters_of<WideResNet<40, 2, 10>>() == 2'243'546);
static_assert(parameters_of<WideResNet<16, 8, 10>>() == 10'961'370);
static_assert(parameters_of<WideResNet<16, 4, 10>>() == 2'748'890);
static_assert(parameters_of<WideResNet<16, 1, 10>>() == 175'066);
static_assert(parameters_of<WideResNet<10, 1, 10>>() == 77'850);
static_assert(parameters_of<UNet5x64>() == 232'687'328);
static_assert(parameters_of<UNet<6, 72>>() == 362'157'516);
static_assert(parameters_of<UNet<11, 128>>() == 2'213'834'176);
static_assert(parameters_of<UNet<24, 128>>() == 4'993'859'008);
static_assert(parameters_of<UNet<24, 160>>() == 7'802'903'600);
static_assert(parameters_of<UNet<48, 160>>() == 15'822'206'000);
static_assert(parameters_of<UNet<2, 8, 2>>() == 17'068);
static_assert(parameters_of<CarvanaUNet>() == 31'037'698);

}  // namespace models

using models::hub::torchvision_resnet;

static listed<models::AlexNet> const alexnet("alexnet");
static listed<models::AlexNetOneTower> const alexnet_one_tower("alexnet-one-tower");
static listed<models::ResNet18> const resnet_18("resnet-18", torchvision_resnet<models::ResNet18>);
static listed<models::ResNet50> const resnet_50("resnet-50", torchvision_resnet<models::ResNet50>);
static listed<models::ResNet152> const resnet_152("resnet-152",
                                                  torchvision_resnet<models::ResNet152>);
static listed<models::WideResNet50> const wide_resnet_50("wide-resnet-50-2",
                                                         torchvision_resnet<models::WideResNet50>);
static listed<models::ResNeXt50> const resnext_50("resnext-50-32x4d",
                                                  torchvision_resnet<models::ResNeXt50>);
static listed<models::Wrn28x10> const wrn_28_10("wrn-28-10");
static listed<models::UNet5x64> const unet_5_64("unet-5-64");
static listed<models::CarvanaUNet> const unet_carvana(
    "unet-carvana", models::hub::milesial_unet<models::CarvanaUNet>);
