# Kills, full disks, vanished folders, jumping clocks: `ctest -L campaign` tries each kind on each program a few times
# (HALFLAB_CAMPAIGN_COUNT in the environment: how often).
find_program(SYSTEM_PYTHON python3 REQUIRED)
foreach(kind kills full_disk file_sizes calls read_only vanished two_at_once clocks shorter)
  add_test(NAME campaign:${kind} COMMAND sh -c
    "exec '${SYSTEM_PYTHON}' '${CMAKE_CURRENT_LIST_DIR}/campaign.py' '${CMAKE_RUNTIME_OUTPUT_DIRECTORY}' --kinds ${kind} --count \"\${HALFLAB_CAMPAIGN_COUNT:-3}\"")
  list(APPEND campaign_tests campaign:${kind})
endforeach()
add_test(NAME campaign:careless COMMAND ${SYSTEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/careless_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(${campaign_tests} campaign:careless PROPERTIES LABELS campaign SKIP_RETURN_CODE 3 TIMEOUT 100000
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
