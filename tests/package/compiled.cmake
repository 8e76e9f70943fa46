# SPDX-License-Identifier: BSL-1.0
#
# Programs with the installed compiled part, one of which saves and loads, print the bits and messages that they print without; one that is compiled otherwise than the part is not linked,
# and the linker says how it was compiled.
set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
execute_process(
  COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${consumer} -B ${FOLDER} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${PREFIX}
          -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-DPIPE_DEBUG_KERNELS -DCONSUMER_COMPILED=ON
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
foreach(program IN ITEMS consumer files)
  foreach(name IN ITEMS ${program} ${program}.compiled)
    execute_process(COMMAND ${FOLDER}/${name} OUTPUT_VARIABLE ${name} WORKING_DIRECTORY ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  if(NOT ${program} OR NOT "${${program}}" STREQUAL "${${program}.compiled}")
    message(FATAL_ERROR "${${program}} and, with the compiled part, ${${program}.compiled}")
  endif()
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER} --target consumer.mixed OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE refused)
if(NOT refused OR NOT said MATCHES "undefined reference to .*compiled_library<[0-9]+, pp::detail::optimized_kernels")
  message(FATAL_ERROR "a program of other flags: ${refused}: ${said}")
endif()
