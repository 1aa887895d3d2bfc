#pragma once
/// What the benchmark times.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/frame/experiment.h"
#include "experiments/frame/help_text.h"

namespace bench {

/// Something timed: `work` does `items` units of it.
struct Case {
  std::string name;
  double items;
  std::function<void()> work;
  std::vector<std::string> limits;      ///< it is held against the fastest of these cases
  bool is_peer = false;                 ///< a limit or a peer: not ours, reported beside ours
  int threads = 1;                      ///< one: pinned to a core
  double products = 0;                  ///< multiplications in a step's linear maps; 0: no step
  bool is_instrumented = false;         ///< a step that is measured besides, reported apart
  std::vector<std::string> needs = {};  ///< cases that figures on this one are derived from too
  bool is_observed = false;             ///< one that it needs, with flags or counts besides
  std::string group = {};               ///< those that were added together, by the title of what they are
  double bytes = 0;                     ///< read and written for an item; 0: no point of the roofline
  double operations = 1;                ///< of an item: one for a rounded result, two for a multiply-add

  Case moving(double bytes_per_item, double operations_per_item = 1) && {
    bytes = bytes_per_item;
    operations = operations_per_item;
    return std::move(*this);
  }
};

using Rates = std::map<std::string, double>;

/// A figure that follows from the rates of several cases.
struct Derived {
  std::string key;  ///< with its kind: "overhead.step_mlp_amp"
  std::optional<double> value;
  std::string limit;        ///< what the value is to reach: "at most 1.6"; empty where there is no target
  std::string why_not_run;  ///< where there is no value
  std::string note;         ///< printed beside it
};

/// Throws unless `right`: no case is timed that computes something else than its definition.
void require(bool right, std::string_view what);

/// Whether cases of the path for AVX2 alone run here.
bool has_avx2();

inline constexpr std::size_t array_size = 1 << 20;

/// N(0, 1), from a stream of its own for each purpose.
std::vector<float> normal_values(std::size_t count, std::string_view purpose);

/// Magnitudes log-uniform from 2^-30 to 2^-4, as gradients have them: a third below FP16's normal range.
std::vector<float> gradient_like_values(std::size_t count, std::string_view purpose);

/// Conversions, operations and functions on arrays, with their limits and peers.
void add_number_cases(std::vector<Case>& cases);
/// Operations on arrays under attributes other than the defaults, and in other formats than binary16.
void add_attribute_cases(std::vector<Case>& cases);
/// Arrays in block formats.
void add_block_cases(std::vector<Case>& cases);
/// Decoding, and codes without gaps.
void add_packing_cases(std::vector<Case>& cases);
/// Matrix products.
void add_product_cases(std::vector<Case>& cases);
/// What is done to gradients and weights between backward passes.
void add_update_cases(std::vector<Case>& cases);
/// Histograms of exponents and of codes.
void add_histogram_cases(std::vector<Case>& cases);
/// Files of tensors, in the page cache, by halflab hist.
void add_command_cases(std::vector<Case>& cases);
/// Whole steps of training, with and without instruments.
void add_training_cases(std::vector<Case>& cases);
/// Operations per second against bandwidth and arithmetic of this machine, as table and figure.
void draw_roofline(experiments::Run& run, const std::vector<Case>& cases, const Rates& rates);
experiments::Outputs roofline_outputs();
/// The keys of what is derived, for --help.
std::vector<experiments::SummaryKey> derived_keys();
/// Steps over the time of their products alone, over FP32 steps and over steps under amp.
std::vector<Derived> derive_from_steps(const std::vector<Case>& cases, const Rates& rates);
/// PyTorch's steps, which it times, over ours.
std::vector<Derived> derive_from_pytorch(const Rates& rates);
/// PyTorch's steps with halflab.torch.watch over the same without, which it times.
std::vector<Derived> derive_from_watch();
/// Casts of arrays over those of Python's libraries, which it times.
std::vector<Derived> derive_from_array_peers(const Rates& rates);
/// Steps with statistics, the twin or the flight recorder over the same without.
std::vector<Derived> derive_from_instruments(const Rates& rates);

}  // namespace bench
