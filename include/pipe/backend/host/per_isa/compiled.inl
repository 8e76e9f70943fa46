// SPDX-License-Identifier: BSL-1.0
//
// The kernels of an instruction set that no formula and no number of a model is part of, for the
// target pipe::compiled: see <pipe/compiled.hpp>, which includes this file as kernels.hpp includes
// compile.inl.

PIPE_COMPILED template decltype(tile_of<1, float>) tile_of<1, float>;
PIPE_COMPILED template decltype(tile_of<2, float>) tile_of<2, float>;
PIPE_COMPILED template decltype(tile_of<4, float>) tile_of<4, float>;
PIPE_COMPILED template decltype(tile_of<8, float>) tile_of<8, float>;
PIPE_COMPILED template decltype(copy_rows<float>) copy_rows<float>;
PIPE_COMPILED template decltype(transpose_square<float>) transpose_square<float>;
PIPE_COMPILED template void transpose<float>(float const*, extent, extent, extent, float*, extent);
PIPE_COMPILED template decltype(transpose_to<float, float>) transpose_to<float, float>;
PIPE_COMPILED template decltype(transpose_in_panels<float>) transpose_in_panels<float>;
PIPE_COMPILED template decltype(column_sums<float, false>) column_sums<float, false>;
PIPE_COMPILED template decltype(column_sums<float, true>) column_sums<float, true>;
PIPE_COMPILED template decltype(slope_sums<float, false>) slope_sums<float, false>;
PIPE_COMPILED template decltype(slope_sums<float, true>) slope_sums<float, true>;
PIPE_COMPILED template decltype(sum_positions<float>) sum_positions<float>;
PIPE_COMPILED template decltype(add_bag<float>) add_bag<float>;

// Attention.
PIPE_COMPILED template decltype(rotate_rows<false, float>) rotate_rows<false, float>;
PIPE_COMPILED template decltype(rotate_rows<true, float>) rotate_rows<true, float>;
PIPE_COMPILED template decltype(softmax_row<false, float>) softmax_row<false, float>;
PIPE_COMPILED template decltype(softmax_row<true, float>) softmax_row<true, float>;
PIPE_COMPILED template decltype(softmax_slopes<false, float>) softmax_slopes<false, float>;
PIPE_COMPILED template decltype(softmax_slopes<true, float>) softmax_slopes<true, float>;
PIPE_COMPILED template decltype(finish_rows<float>) finish_rows<float>;
PIPE_COMPILED template decltype(dot<float>) dot<float>;

// Norms, softmax, losses.
PIPE_COMPILED template decltype(norm_row<float, false, false>) norm_row<float, false, false>;
PIPE_COMPILED template decltype(norm_row<float, true, false>) norm_row<float, true, false>;
PIPE_COMPILED template decltype(norm_row<float, true, true>) norm_row<float, true, true>;
PIPE_COMPILED template decltype(norm_gradient_row<float, false>) norm_gradient_row<float, false>;
PIPE_COMPILED template decltype(norm_gradient_row<float, true>) norm_gradient_row<float, true>;
PIPE_COMPILED template decltype(norm_parameter_gradient<float, false>)
    norm_parameter_gradient<float, false>;
PIPE_COMPILED template decltype(norm_parameter_gradient<float, true>)
    norm_parameter_gradient<float, true>;
PIPE_COMPILED template decltype(softmax_gradient_row<float, false>)
    softmax_gradient_row<float, false>;
PIPE_COMPILED template decltype(softmax_gradient_row<float, true>)
    softmax_gradient_row<float, true>;
PIPE_COMPILED template decltype(squared_error_row<float>) squared_error_row<float>;
PIPE_COMPILED template decltype(dot_row<float, false>) dot_row<float, false>;
PIPE_COMPILED template decltype(dot_row<float, true>) dot_row<float, true>;
PIPE_COMPILED template decltype(scaled_row<float>) scaled_row<float>;
PIPE_COMPILED template decltype(contrast_logs<float>) contrast_logs<float>;
PIPE_COMPILED template decltype(contrast_row<float>) contrast_row<float>;

// Layers of images.
PIPE_COMPILED template decltype(batch_statistics<float, false>) batch_statistics<float, false>;
PIPE_COMPILED template decltype(batch_statistics<float, true>) batch_statistics<float, true>;
PIPE_COMPILED template decltype(batch_norm_row<float, false>) batch_norm_row<float, false>;
PIPE_COMPILED template decltype(batch_norm_row<float, true>) batch_norm_row<float, true>;
PIPE_COMPILED template decltype(batch_gradient_sums<float, false>)
    batch_gradient_sums<float, false>;
PIPE_COMPILED template decltype(batch_gradient_sums<float, true>) batch_gradient_sums<float, true>;
PIPE_COMPILED template decltype(batch_norm_gradient_row<float, false>)
    batch_norm_gradient_row<float, false>;
PIPE_COMPILED template decltype(batch_norm_gradient_row<float, true>)
    batch_norm_gradient_row<float, true>;
PIPE_COMPILED template decltype(pool_sample<float>) pool_sample<float>;
PIPE_COMPILED template decltype(pool_gradient_sample<float>) pool_gradient_sample<float>;

// Functions over parameters, and of a decoder's new rows.
PIPE_COMPILED template decltype(add<float>) add<float>;
PIPE_COMPILED template decltype(sum_of_squares<float>) sum_of_squares<float>;
PIPE_COMPILED template decltype(clamp<float>) clamp<float>;
PIPE_COMPILED template decltype(approach<float>) approach<float>;
PIPE_COMPILED template decltype(update<SGD, custom::update_context, custom::tensor_update<float>>)
    update<SGD, custom::update_context, custom::tensor_update<float>>;
PIPE_COMPILED template decltype(update<Adam, custom::update_context, custom::tensor_update<float>>)
    update<Adam, custom::update_context, custom::tensor_update<float>>;
PIPE_COMPILED template decltype(update<AdamW, custom::update_context, custom::tensor_update<float>>)
    update<AdamW, custom::update_context, custom::tensor_update<float>>;
PIPE_COMPILED template decltype(multiply_row<float>) multiply_row<float>;
PIPE_COMPILED template decltype(multiply_narrow<decoder_weights::bf16>)
    multiply_narrow<decoder_weights::bf16>;
PIPE_COMPILED template decltype(multiply_narrow<decoder_weights::int8>)
    multiply_narrow<decoder_weights::int8>;
PIPE_COMPILED template decltype(widen_narrow<decoder_weights::bf16>)
    widen_narrow<decoder_weights::bf16>;
PIPE_COMPILED template decltype(widen_narrow<decoder_weights::int8>)
    widen_narrow<decoder_weights::int8>;
PIPE_COMPILED template decltype(add_rows<float>) add_rows<float>;
PIPE_COMPILED template decltype(slope_rows<float>) slope_rows<float>;
