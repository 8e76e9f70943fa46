# SPDX-License-Identifier: BSL-1.0
#
# Runs the portfile of packaging/vcpkg with stand-ins for the functions of vcpkg that it calls, and looks at the package:
#
#     cmake -DROOT=... -DFOLDER=... -DGENERATOR=... -P vcpkg.cmake
#
# A stand-in refuses arguments that vcpkg's function does not have.
set(PORT pipe)
set(port_folder ${ROOT}/packaging/vcpkg/${PORT})
set(CURRENT_PACKAGES_DIR ${FOLDER}/package)
file(REMOVE_RECURSE ${FOLDER})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR NOT VCPKG_BUILD_TYPE STREQUAL "release")
    message(FATAL_ERROR "vcpkg_cmake_configure: ${arg_UNPARSED_ARGUMENTS}, build type ${VCPKG_BUILD_TYPE}")
  endif()
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${arg_SOURCE_PATH} -B ${FOLDER}/build -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build ${FOLDER}/build --target install)
endfunction()

function(vcpkg_cmake_config_fixup)  # without arguments it finds share/PORT
  if(ARGN OR NOT EXISTS ${CURRENT_PACKAGES_DIR}/share/${PORT}/${PORT}Config.cmake)
    message(FATAL_ERROR "vcpkg_cmake_config_fixup: there is no share/${PORT}/${PORT}Config.cmake")
  endif()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "COMMENT" "FILE_LIST")
  file(COPY_FILE ${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright)
endfunction()

set(CMAKE_CURRENT_LIST_DIR ${port_folder})
include(${port_folder}/portfile.cmake)

foreach(name IN ITEMS include/pipe/pipe.hpp share/pipe/pipeConfig.cmake share/pipe/copyright share/pipe/usage)
  if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/${name})
    message(FATAL_ERROR "the package has no ${name}")
  endif()
endforeach()
file(GLOB folders RELATIVE ${CURRENT_PACKAGES_DIR} ${CURRENT_PACKAGES_DIR}/* ${CURRENT_PACKAGES_DIR}/share/*)
if(NOT folders STREQUAL "include;share;share/pipe")
  message(FATAL_ERROR "the package holds ${folders}")
endif()
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${ROOT}/tests/package/consumer -B ${FOLDER}/consumer -DCMAKE_PREFIX_PATH=${CURRENT_PACKAGES_DIR})
