#pragma once
/// Ranks of a run in tests.

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fp16/bulk.h"
#include "sim/trainer/exchange.h"
#include "tests/sim/training_runs.h"

namespace training_runs {

inline Setup with_ranks(std::size_t ranks,
                        const sim::AllReduce& how = {.precision = sim::AllReducePrecision::fp32},
                        Setup setup = {}) {
  setup.options.batch = 24;
  setup.options.steps = 10;
  setup.options.parallel.ranks = ranks;
  setup.options.parallel.all_reduce = how;
  return setup;
}

/// Wires between ranks that are threads of this process.
class Wires {
 public:
  explicit Wires(std::size_t ranks) : barrier_(static_cast<std::ptrdiff_t>(ranks)), shown_(ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) ends_.push_back(std::make_unique<End>(*this, rank));
  }

  sim::Wire& at(std::size_t rank) { return *ends_[rank]; }

  /// Calls compute(wire, rank) on a thread for each rank; rethrows what the lowest rank that throws has thrown.
  void on_all_ranks(const std::function<void(sim::Wire&, std::size_t)>& compute) {
    std::vector<std::exception_ptr> errors(ends_.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
        threads.emplace_back([&, rank] {
          try {
            compute(at(rank), rank);
          } catch (...) {
            errors[rank] = std::current_exception();
          }
        });
      }
    }
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

  /// How Wire::sum adds the terms of element i, one of each rank; what it is on a rank may be another thing on each.
  using Sum = std::function<float(std::span<const float> terms, std::size_t element, std::size_t rank)>;
  Sum sum;

 private:
  class End final : public sim::Wire {
   public:
    End(Wires& wires, std::size_t rank) : wires_(wires), rank_(rank) {}

    std::size_t rank() const override { return rank_; }
    std::size_t ranks() const override { return wires_.shown_.size(); }
    void send_receive(std::span<const std::byte> out, std::optional<std::size_t> to, std::span<std::byte> in,
                      std::optional<std::size_t> from) override {
      if (to) wires_.post(rank_, *to, {out.begin(), out.end()});
      if (!from) return;
      const std::vector<std::byte> message = wires_.take(*from, rank_);
      if (message.size() != in.size()) throw std::runtime_error("a message of another length");
      std::ranges::copy(message, in.begin());
    }
    std::vector<double> gather(std::span<const double> own) override {
      std::vector<double> all;
      for (const std::string& one :
           wires_.show(rank_, {reinterpret_cast<const char*>(own.data()), own.size_bytes()})) {
        const auto* const first = reinterpret_cast<const double*>(one.data());
        all.insert(all.end(), first, first + one.size() / sizeof(double));
      }
      return all;
    }
    double maximum(double own) override { return std::ranges::max(gather(std::span(&own, 1))); }
    std::string broadcast(std::string bytes, std::size_t from) override {
      return wires_.show(rank_, std::move(bytes))[from];
    }
    void sum(std::span<std::uint16_t> halves) override {
      std::vector<float> values(halves.size());
      fp16::half_to_float(halves, values);
      sum(values);
      fp16::float_to_half(values, halves);
    }
    void sum(std::span<float> values) override {
      const std::vector<double> own(values.begin(), values.end());
      const std::vector<double> all = gather(own);
      std::vector<float> terms(ranks());
      for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t rank = 0; rank < ranks(); ++rank)
          terms[rank] = static_cast<float>(all[rank * values.size() + i]);
        values[i] = wires_.sum(terms, i, rank_);
      }
    }

   private:
    Wires& wires_;
    std::size_t rank_;
  };

  void post(std::size_t from, std::size_t to, std::vector<std::byte> message) {
    const std::scoped_lock lock(mutex_);
    messages_[{from, to}].push_back(std::move(message));
    changed_.notify_all();
  }
  std::vector<std::byte> take(std::size_t from, std::size_t to) {
    std::unique_lock lock(mutex_);
    auto& waiting = messages_[{from, to}];
    changed_.wait(lock, [&] { return !waiting.empty(); });
    std::vector<std::byte> message = std::move(waiting.front());
    waiting.pop_front();
    return message;
  }
  std::vector<std::string> show(std::size_t rank, std::string own) {
    shown_[rank] = std::move(own);
    barrier_.arrive_and_wait();
    std::vector<std::string> all = shown_;
    barrier_.arrive_and_wait();
    return all;
  }

  std::barrier<> barrier_;
  std::vector<std::string> shown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<std::vector<std::byte>>> messages_;
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace training_runs
