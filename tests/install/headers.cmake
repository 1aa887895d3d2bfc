# Compiles every header under PREFIX on its own, and a program that calls every function of them, with all warnings that
# users of a header may have switched on. OTHER_INCLUDES is where the libraries are that optional headers adapt to.
get_filename_component(id ${COMPILER} NAME)
set(folder ${PREFIX}/headers_by_${id})  # of its own, since two compilers may be at it at one time
file(MAKE_DIRECTORY ${folder})
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
file(GLOB_RECURSE headers RELATIVE ${PREFIX}/include ${PREFIX}/include/*.h)
list(LENGTH headers count)
if(count LESS 20)
  message(FATAL_ERROR "${PREFIX}/include holds ${count} headers: '${headers}'")
endif()

# compile(NAME SOURCE [OPTION...]). The headers are not looked for as a system's, whose warnings no compiler shows.
function(compile name source)
  execute_process(
    COMMAND ${COMPILER} -std=c++20 -S -o ${folder}/compiled.s ${warnings} ${ARGN} -I${PREFIX}/include -isystem ${OTHER_INCLUDES} ${source}
    RESULT_VARIABLE result ERROR_VARIABLE complaints)
  if(NOT result EQUAL 0)
    set(refused ${refused} ${name} PARENT_SCOPE)
    message("${complaints}")
  endif()
endfunction()

foreach(header ${headers})
  set(source ${folder}/one_header.cpp)
  file(WRITE ${source} "#include \"${header}\"\n")
  compile(${header} ${source})
endforeach()
file(WRITE ${folder}/one_header.cpp "#include <halflab/fp16/numbers.h>\n#include <halflab/fp16/math.h>\n")
compile("numbers.h and math.h without exceptions" ${folder}/one_header.cpp -fno-exceptions -fno-rtti)
# GCC warns of some things only where it optimises.
foreach(level -O0 -O3)
  compile("every_function.cpp ${level}" ${CMAKE_CURRENT_LIST_DIR}/every_function.cpp ${level})
endforeach()
if(refused)
  message(FATAL_ERROR "${COMPILER} does not compile these without a warning: ${refused}")
endif()
message("${count} headers, and calls of their functions, compile without a warning")
