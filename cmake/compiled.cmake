# SPDX-License-Identifier: BSL-1.0
#
# The target pipe::compiled: pipe::pipe, and a static library of the templates that <pipe/compiled.hpp> lists. It is built if a target links
# it, in the tree and with the flags of the project that does.

# pipe_compiled_library(NAME): such a library, to which a project may give further flags.
function(pipe_compiled_library name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <pipe/pipe.hpp>\n")
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PUBLIC pipe::pipe)
  target_compile_definitions(${name} INTERFACE PIPE_COMPILED=extern PRIVATE PIPE_COMPILED=)
endfunction()

if(NOT TARGET pipe::compiled)
  pipe_compiled_library(pipe_compiled)
  add_library(pipe::compiled ALIAS pipe_compiled)
endif()
