#pragma once
/// The trainer's own observers, which TrainerOptions asks for.

#include "sim/trainer/step_observer.h"

namespace sim {

/// Every n-th step, from the first: StepRecord::twin.
class TwinObserver final : public StepObserver {
 public:
  explicit TwinObserver(std::size_t every) : every_(every) {}
  BackwardNeeds needs(std::size_t step) const override;
  void after_decision(const ObservedDecision& decision, StepRecord& record) override;

 private:
  std::size_t every_;
};

/// Every n-th step, from the first: StepRecord::statistics.
class StatisticsObserver final : public StepObserver {
 public:
  explicit StatisticsObserver(std::size_t every) : every_(every) {}
  BackwardNeeds needs(std::size_t step) const override;
  void after_decision(const ObservedDecision& decision, StepRecord& record) override;

 private:
  std::size_t every_;
};

/// Every step that is skipped or ends the run: StepRecord::skip; and one that should have been and was not:
/// StepRecord::unseen_overflow. The cause of a backward pass that was not finite is
/// looked for while its tape is there, before anybody knows whether the step is skipped.
class SkipObserver final : public StepObserver {
 public:
  explicit SkipObserver(fp16::Format twin_format) : twin_format_(twin_format) {}
  BackwardNeeds needs(std::size_t) const override { return {.first_nonfinite = true}; }
  void after_backward(const ObservedBackward& backward, StepRecord& record) override;
  void after_decision(const ObservedDecision& decision, StepRecord& record) override;
  void after_last_decision(StepRecord& record) override;

 private:
  fp16::Format twin_format_;
};

}  // namespace sim
