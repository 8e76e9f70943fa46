# SPDX-License-Identifier: BSL-1.0
#
# What tests, examples and benchmarks share: warnings as errors, the optional tools, and CUDA when nvcc is there.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)

find_program(PIPE_CCACHE ccache)
if(PIPE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PIPE_CCACHE})
endif()

# clang++ counts sign conversions among -Wconversion, g++ does not: both look for the same here.
set(PIPE_WARNINGS -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Wswitch-enum -Werror)
add_library(pipe.warnings INTERFACE)
target_compile_options(
  pipe.warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${PIPE_WARNINGS}>"
                          "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra>")

target_compile_definitions(pipe.warnings INTERFACE PIPE_SHOWS_WARNINGS)

add_library(pipe.native INTERFACE)
if(PIPE_NATIVE)
  target_compile_options(pipe.native INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-march=native>"
                                               "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-march=native>")
  # Kernels of the best instruction set of this CPU are all that such a program can call; with AVX-512, BF16 has products of its own.
  target_compile_definitions(
    pipe.native INTERFACE "PIPE_INSTRUCTION_SETS=host::least_isa(),host::least_isa(host::isa::avx512_bf16),host::least_isa(host::isa::amx)")
endif()

# nvcc: found here, enabled only when there is a .cu file to compile.
find_program(PIPE_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS tests/*.cu examples/*.cu bench/*.cu)
set(PIPE_HAS_CUDA FALSE)
if(PIPE_CUDA AND PIPE_NVCC AND cuda_sources)
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
  set(PIPE_HAS_GPU TRUE)
  if(no_gpu)
    set(PIPE_HAS_GPU FALSE)
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    if(PIPE_HAS_GPU)
      set(CMAKE_CUDA_ARCHITECTURES native)
    else()
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real)
    endif()
  endif()
  set(CMAKE_CUDA_COMPILER ${PIPE_NVCC})
  enable_language(CUDA)
  set(PIPE_HAS_CUDA TRUE)
endif()

include(${CMAKE_CURRENT_LIST_DIR}/mpi.cmake)

# What computes models with Hana is left out where there is no Boost.
include(CheckIncludeFileCXX)
check_include_file_cxx(boost/hana.hpp PIPE_HAS_HANA -std=c++20)

include(${CMAKE_CURRENT_LIST_DIR}/costs.cmake)

# pipe_compiled_by(TARGET LIBRARY): the library of compiled templates that a target links: of its own flags, or none ("").
function(pipe_compiled_by target library)
  if(PIPE_COMPILED)
    set_target_properties(${target} PROPERTIES PIPE_COMPILED_BY "${library}")
  endif()
endfunction()

# A target from the sources matching the expressions in ARGN; `out` is FALSE when there are none. Tests are without the sources that are left out.
# What takes the longest to compile is first, where Ninja begins.
function(pipe_executable out name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ARGN})
  if(name MATCHES "^tests[.]")
    pipe_leave_out(sources ${name})
  endif()
  if(NOT PIPE_HAS_CUDA)
    list(FILTER sources EXCLUDE REGEX "\\.cu$")
  endif()
  if(name MATCHES "[.]tsan$" AND NOT PIPE_ALL_TESTS)  # of refusals and memory, whose threads do as those of the other sources
    list(FILTER sources EXCLUDE REGEX "/(accumulation|bad_input|memory|no_labels|no_memory|throw_sites)\\.cpp$")
  endif()
  pipe_longest_first(sources ${name})
  if(name MATCHES "^tests[.]")
    pipe_join(sources ${name})
  endif()
  if(sources)
    add_executable(${name} ${sources})
    target_link_libraries(${name} PRIVATE pipe::pipe $<TARGET_PROPERTY:PIPE_COMPILED_BY>)
    pipe_compiled_by(${name} pipe::compiled)
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()
