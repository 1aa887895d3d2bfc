# Holds what the compiler says of wrong calls to what the headers promise: each is refused, with the reason beside it.
set(source ${PREFIX}/refused.cpp)

set(standard 20)

function(compile statements result complaints)
  list(JOIN statements ";\n" lines)
  file(WRITE ${source} "#include <halflab/fp16/math.h>\n#include <halflab/fp16/half_text.h>\nusing namespace fp16;\nvoid call(half h) {\n${lines};\n}\n")
  execute_process(COMMAND ${COMPILER} -std=c++${standard} -fsyntax-only -I${PREFIX}/include ${source}
    RESULT_VARIABLE code ERROR_VARIABLE text)
  set(${result} ${code} PARENT_SCOPE)
  set(${complaints} "${text}" PARENT_SCOPE)
endfunction()

# expect_refusals(REASON STATEMENTS...): each is refused, for that reason.
function(expect_refusals reason)
  compile("${ARGN}" result complaints)
  set(line 5)  # the first of the statements
  foreach(statement ${ARGN})
    if(NOT complaints MATCHES "refused.cpp:${line}:[0-9]+: error")
      message(FATAL_ERROR "'${statement}' is not refused: ${complaints}")
    endif()
    math(EXPR line "${line} + 1")
  endforeach()
  string(FIND "${complaints}" "${reason}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "'${ARGN}' are not refused with '${reason}': ${complaints}")
  endif()
endfunction()

set(allowed "add<binary16>(0x3c00, 1)" "decode<binary16>(0x3e00)" "half_bits_to_float(h.bits())"
  "to_shortest<binary16>(0x3e00)" "math::pow(0x3e00, 0x4000)" "h = half(1.5f)" "h = 2" "h += half(1.5f)" "h += 1")
compile("${allowed}" result complaints)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "'${allowed}' do not compile: ${complaints}")
endif()

expect_refusals("takes a code, not a value; encode() makes one"
  "add<binary16>(1.5, 2.5)" "add<binary16>(h, 1)" "add<e4m3>(1, 0.5f)" "decode<binary16>(1.5)" "half_bits_to_float(h)"
  "to_shortest<binary16>(1.5)" "math::pow(1.5, 2.0)" "math::tanh(1.5)")
expect_refusals("would round unseen: half(...) says so" "h = 1.5f" "h = 1.5")
expect_refusals("half(h + x) or h + half(x)? They differ; write one" "h += 1.5f" "h += 1.5L")

foreach(literal 70000_h 017_h 0b11_h)
  compile("h = ${literal}" result complaints)
  if(NOT complaints MATCHES "expected_a_decimal_or_hexadecimal_number_below_65520")
    message(FATAL_ERROR "${literal} is not refused with a reason: ${complaints}")
  endif()
endforeach()

# One reason, and not the thousands of errors that follow from it.
set(standard 17)
compile("h = 2" result complaints)
string(REGEX MATCHALL "error: " errors "${complaints}")
list(LENGTH errors count)
if(NOT complaints MATCHES "Halflab needs C\\+\\+20" OR count GREATER 2)
  message(FATAL_ERROR "C++17 is not refused with one reason: ${complaints}")
endif()
