#include "experiments/gpu/gpu_status/build.h"

#include <string_view>

#include "experiments/frame/build_information.h"

namespace experiments::gpu_status {

Json cuda_json() {
  constexpr std::string_view build = HALFLAB_CUDA_BUILD;
  return build.empty() ? Json() : Json(build);
}

Json build_json() {
  const BuildInformation& build = build_information();
  return Json::object({{"version", build.version},
                       {"git_revision", build.git_revision},
                       {"git_dirty", build.git_dirty},
                       {"compiler", build.compiler},
                       {"compiler_flags", build.compiler_flags},
                       {"cuda", cuda_json()}});
}

}  // namespace experiments::gpu_status
