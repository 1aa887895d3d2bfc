#pragma once
/// The options of an operation's evaluation, of whatever struct they are.

#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace sim {

/// Options of one operation, such as Conv2dOptions, as all operations are given them: a value that is shared
/// and never changed, so that copies are cheap.
class OperationOptions {
 public:
  /// The defaults of whichever operation reads them.
  OperationOptions() = default;

  template <class Options>
  requires(std::is_class_v<Options>&& std::is_aggregate_v<Options>) OperationOptions(
      Options options)  // implicit: apply(conv2d, {x, w}, "conv1", Conv2dOptions{.stride = 2})
      : value_(std::make_shared<const Options>(std::move(options))), type_(&typeid(Options)) {}

  /// The options held, or the struct's defaults where nothing was given. Throws std::logic_error, naming both
  /// structs, where another one is held.
  template <class Options>
  const Options& get() const {
    static const Options defaults{};
    if (!value_) return defaults;
    if (*type_ != typeid(Options)) refuse(*type_, typeid(Options));
    return *static_cast<const Options*>(value_.get());
  }

 private:
  [[noreturn]] static void refuse(const std::type_info& held, const std::type_info& asked_for);

  std::shared_ptr<const void> value_;
  const std::type_info* type_ = nullptr;
};

}  // namespace sim
