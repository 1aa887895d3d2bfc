#include "experiments/validation/proofs.h"
#include "experiments/validation/record_files.h"
#include "tests/fuzz/fuzz.h"

using namespace experiments::validation;

/// Every cell of a table can be asked for, and what a table proves.
HALFLAB_FUZZ(input) {
  const std::filesystem::path file = fuzz::as_file(input, "table.csv");
  for (const char* column : {"operation", "subject", "inputs", "mismatches"}) {
    fuzz::allow_refusal([&] {
      const auto table = CsvTable::read(file);
      for (std::size_t row = 0; row < table.value().size(); ++row) {
        table->cell(row, column);
        fuzz::allow_refusal([&] { table->number(row, column); });
        fuzz::allow_refusal([&] { table->real(row, column); });
      }
    });
  }
  fuzz::allow_refusal([&] { row_proofs(file); });
}
