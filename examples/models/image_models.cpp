// SPDX-License-Identifier: BSL-1.0
#include "alexnet.hpp"
#include "amoebanet.hpp"
#include "hub/resnet.hpp"
#include "hub/unet.hpp"
#include "planned_model.hpp"
#include "resnet.hpp"
#include "unet.hpp"

using models::hub::torchvision_resnet;

static listed<models::AlexNet> const alexnet("alexnet");
static listed<models::AlexNetOneTower> const alexnet_one_tower("alexnet-one-tower");
static listed<models::ResNet18> const resnet_18("resnet-18",
                                                torchvision_resnet<models::ResNet18>());
static listed<models::ResNet50> const resnet_50("resnet-50",
                                                torchvision_resnet<models::ResNet50>());
static listed<models::ResNet152> const resnet_152("resnet-152",
                                                  torchvision_resnet<models::ResNet152>());
static listed<models::WideResNet50> const wide_resnet_50(
    "wide-resnet-50-2", torchvision_resnet<models::WideResNet50>());
static listed<models::ResNeXt50> const resnext_50("resnext-50-32x4d",
                                                  torchvision_resnet<models::ResNeXt50>());
static listed<models::Wrn28x10> const wrn_28_10("wrn-28-10");
static listed<models::AmoebaNet18x208> const amoebanet_208("amoebanet-d-18-208");
static listed<models::AmoebaNet18x256> const amoebanet_256("amoebanet-d-18-256");
static listed<models::UNet5x64> const unet_5_64("unet-5-64");
static listed<models::CarvanaUNet> const unet_carvana(
    "unet-carvana", models::hub::milesial_unet<models::CarvanaUNet>());
