#include "tools/halflab/commands.h"

int main(int argc, char** argv) {
  return halflab::run(argc, argv);
}
