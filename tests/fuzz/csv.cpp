#include <optional>

#include "experiments/validation/proofs.h"
#include "experiments/validation/record_files.h"
#include "tests/fuzz/fuzz.h"

using namespace experiments::validation;

/// Every cell of a table can be asked for, and what a table proves.
HALFLAB_FUZZ(input) {
  const std::filesystem::path file = fuzz::as_file(input, "table.csv");
  std::optional<CsvTable> table;
  fuzz::allow_refusal([&] { table = CsvTable::read(file); });
  if (!table) return;
  for (const char* column : {"operation", "subject", "inputs", "mismatches"}) {
    fuzz::allow_refusal([&] {
      for (std::size_t row = 0; row < table->size(); ++row) {
        table->cell(row, column);
        fuzz::allow_refusal([&] { table->number(row, column); });
        fuzz::allow_refusal([&] { table->real(row, column); });
      }
    });
  }
  fuzz::allow_refusal([&] { row_proofs(file); });
}
