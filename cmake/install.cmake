# SPDX-License-Identifier: BSL-1.0
#
# `cmake --install` puts the headers and a package that `find_package(pipe)` reads; it holds no path of this machine.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_folder ${CMAKE_INSTALL_DATADIR}/pipe)
install(TARGETS pipe EXPORT pipeTargets FILE_SET HEADERS)
install(EXPORT pipeTargets NAMESPACE pipe:: DESTINATION ${package_folder})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/pipeConfig.cmake.in ${PROJECT_BINARY_DIR}/pipeConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/pipeConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES ${CMAKE_CURRENT_LIST_DIR}/compiled.cmake ${PROJECT_BINARY_DIR}/pipeConfig.cmake ${PROJECT_BINARY_DIR}/pipeConfigVersion.cmake
  DESTINATION ${package_folder})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/pipe)
