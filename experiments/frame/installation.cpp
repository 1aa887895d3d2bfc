#include "experiments/frame/installation.h"

namespace experiments {

namespace fs = std::filesystem;

fs::path program_folder() {
  return fs::read_symlink("/proc/self/exe").parent_path();
}

fs::path prefix_of(const fs::path& program_folder) {
  const fs::path above = program_folder.parent_path();
  return program_folder.filename() == "halflab" && above.filename() == "libexec" ? above.parent_path()
                                                                                 : above;
}

fs::path experiments_folder() {
  const fs::path beside = program_folder();
  const fs::path installed = prefix_of(beside) / "libexec" / "halflab";
  return fs::is_directory(installed) ? installed : beside;
}

fs::path shared_data(std::string_view name) {
  return prefix_of(program_folder()) / "share" / "halflab" / name;
}

fs::path installed_pages() {
  return prefix_of(program_folder()) / "share" / "doc" / "halflab" / "docs";
}

}  // namespace experiments
