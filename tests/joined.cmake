# SPDX-License-Identifier: BSL-1.0
#
# Some sources of a program of tests are compiled together, as one: see joined.py. A source with options of its own, or of which joined.py says so,
# stands alone.
option(PIPE_JOIN_TESTS "Compile some sources of tests together, which takes about three quarters of the time; OFF: each by itself, as editors know them" ON)

# Seconds that the sources of a group take together, each compiled by itself: so few that no core compiles the last group while others have none left.
set(seconds_of_group 60)

if(PIPE_JOIN_TESTS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/joined.py alone ${sources} OUTPUT_VARIABLE stands_alone
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" stands_alone "${stands_alone}")
  set_property(GLOBAL PROPERTY PIPE_STANDS_ALONE "${stands_alone}")
endif()

# pipe_join(SOURCES PROGRAM): puts groups in the place of C++ sources of a program.
function(pipe_join list program)
  if(NOT PIPE_JOIN_TESTS)
    return()
  endif()
  get_property(stands_alone GLOBAL PROPERTY PIPE_STANDS_ALONE)
  set(alone)
  set(joined)
  set(all_seconds 0)
  set(sources ${${list}})
  pipe_longest_first(sources ${program})
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(not_precompiled ${source} SKIP_PRECOMPILE_HEADERS)
    if(source IN_LIST stands_alone OR options OR not_precompiled OR NOT source MATCHES "[.]cpp$")
      list(APPEND alone ${source})
    else()
      list(APPEND joined ${source})
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
      pipe_cost_of(seconds "compile ${program} ${path}")
      math(EXPR all_seconds "${all_seconds} + ${seconds} + 1")
    endif()
  endforeach()
  list(LENGTH joined count)
  if(count LESS 2)
    return()
  endif()
  math(EXPR groups "${all_seconds} / ${seconds_of_group} + 1")
  set(number 0)
  foreach(source IN LISTS joined)  # in turn, so that the groups take about the same time
    math(EXPR group "${number} % ${groups}")
    list(APPEND group_${group} ${source})
    math(EXPR number "${number} + 1")
  endforeach()
  math(EXPR last "${groups} - 1")
  foreach(group RANGE ${last})
    if(group_${group})
      set(file ${CMAKE_CURRENT_BINARY_DIR}/joined/${program}.${group}.cpp)
      add_custom_command(OUTPUT ${file} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/joined.py write ${file} ${group_${group}}
                         DEPENDS ${group_${group}} ${PROJECT_SOURCE_DIR}/tests/joined.py VERBATIM)
      list(APPEND alone ${file})
    endif()
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/joined)
  set(${list} ${alone} PARENT_SCOPE)
endfunction()
