// SPDX-License-Identifier: BSD-3-Clause
/// Three variants of conjugate gradients. They agree in exact arithmetic, and differ in the sums that they wait for.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <headway/headway.hpp>
#include <string>
#include <vector>

#include "halo.hpp"
#include "poisson.hpp"
#include "update.hpp"

namespace headway::cg {

inline const std::array<std::string, 3> methods = {"cg", "merged", "pipelined"};

struct SolverOptions {
  double tolerance = 1e-8;  // of |r| / |b|
  std::size_t iterations_max = 10'000;
  std::size_t looks = 16;     // of the pipelined one, in each product
  std::size_t replace = 100;  // of the pipelined one: residuals are computed anew after so many iterations; 0: never
};

/// How it went, the same on every PE.
struct History {
  std::vector<double> residuals;  // |r| / |b| before the first iteration and after each, by the recurrence
  bool converged = false;
  double seconds = 0;  // this PE's

  std::size_t iterations() const { return residuals.size() - 1; }
};

/// The quality of a solution. All values but the error are relative to |b|.
struct Found {
  double residual;   // |b - A x|
  double gap;        // |b - A x - r|, where r is the recurrence's
  double error;      // |x - solution|
  double error_max;  // that a residual like that allows
};

/// Two dot products, of which all PEs' are summed at once.
struct Dots {
  double gamma = 0, delta = 0;  // (r, r), (A r, r)
};
inline Dots operator+(const Dots& a, const Dots& b) { return {a.gamma + b.gamma, a.delta + b.delta}; }

/// One PE's part. All calls are collective. Sums are made in the order of PEs, so that a run is repeated to the bit.
///
///     cg         |p A p ==sum==> x r ==sum==> p|                  2 sums and a halo one after the other
///     merged     |A r ==sum==> p s x r|                           1 sum and a halo one after the other
///     pipelined  |A w, and with it ==sum==> z s p x r w|          1 sum beside halo and product
class Solver {
 public:
  static constexpr std::size_t vectors = 8;

  Solver(Pe& pe, const Blocks& blocks, const SolverOptions& options, Product& product, Processor& processor)
      : pe_(pe),
        options_(options),
        product_(product),
        processor_(processor),
        n_(blocks.n()),
        area_(blocks.block(pe.id())),
        b_(right_hand_side(n_, area_)) {
    b_norm_ = std::sqrt(sum(norm2(b_)));
  }

  /// Solves A x = b from x = 0.
  History run(const std::string& method, std::size_t iterations_max) {
    for (Vector* const vector : {&x_, &p_, &s_, &w_, &z_, &q_}) vector->clear();
    r_.assign(b_);
    iterations_max_ = iterations_max;
    pe_.quiesce();
    const std::int64_t begin = pe_.engine().now();
    History history = method == "cg" ? blocking() : method == "merged" ? merged() : pipelined();
    history.seconds = double(pe_.engine().now() - begin) * 1e-9;
    return history;
  }

  /// Of the last run().
  Found found() {
    product_.run(x_, s_, 0);
    double residual = 0, gap = 0, error = 0, size = 0;
    for_each([&](std::ptrdiff_t row, std::ptrdiff_t i) {
      const double exact = solution(n_, area_.row + row, area_.column + i);
      const double true_r = b_.row(row)[i] - s_.row(row)[i], drift = true_r - r_.row(row)[i];
      residual += true_r * true_r;
      gap += drift * drift;
      error += (x_.row(row)[i] - exact) * (x_.row(row)[i] - exact);
      size += exact * exact;
    });
    // Computing b - A x rounds ten times, each time by 2^-53 of at most 8 times the largest of x.
    const double rounding = 80 * 0x1p-53 * std::sqrt(sum(size));
    const double norm = std::sqrt(sum(residual));
    return {norm / b_norm_, std::sqrt(sum(gap)) / b_norm_, std::sqrt(sum(error)),
            (norm + rounding) / smallest_eigenvalue(n_) * (1 + 1e-6)};
  }

 private:
  /// Hestenes and Stiefel, 1952.
  History blocking() {
    History history;
    p_.assign(r_);
    double gamma = sum(norm2(r_));
    while (goes_on(history, gamma)) {
      const double alpha = gamma / sum(product_.run(p_, s_, 0));
      double part = 0;
      for_each_row([&](std::ptrdiff_t row, std::ptrdiff_t columns) {
        update_solution(alpha, columns, x_.row(row), r_.row(row), p_.row(row), s_.row(row));
        part += dot(r_.row(row), r_.row(row), columns);
      });
      charge(6);
      const double next = sum(part), beta = next / gamma;
      gamma = next;
      for_each_row([&](std::ptrdiff_t row, std::ptrdiff_t columns) {
        update_direction(beta, columns, p_.row(row), r_.row(row));
      });
      charge(3);
    }
    return history;
  }

  /// Chronopoulos and Gear, 1989.
  History merged() {
    History history;
    Steps steps;
    Dots part{norm2(r_), product_.run(r_, w_, 0)};
    for (;;) {
      const Dots dots = allreduce(pe_, part, std::plus<>());
      if (!goes_on(history, dots.gamma)) return history;
      const auto [alpha, beta] = steps.next(dots);
      part.gamma = 0;
      for_each_row([&, alpha = alpha, beta = beta](std::ptrdiff_t row, std::ptrdiff_t columns) {
        update_merged(alpha, beta, columns, x_.row(row), r_.row(row), p_.row(row), s_.row(row), w_.row(row));
        part.gamma += dot(r_.row(row), r_.row(row), columns);
      });
      charge(9);
      part.delta = product_.run(r_, w_, 0);
    }
  }

  /// Ghysels and Vanroose, "Hiding global synchronization latency in the preconditioned conjugate gradient algorithm",
  /// 2014, algorithm 3: w = A r, s = A p and z = A s by recurrences, so that the product of an iteration needs none of
  /// its sums. Rounding in these adds up: now and then they are computed from x and p (replacement).
  History pipelined() {
    History history;
    Steps steps;
    Dots part{norm2(r_), product_.run(r_, w_, 0)};
    for (std::size_t iteration = 1;; ++iteration) {
      auto all = allreduce_async(pe_, part, std::plus<>(), {.ordered = true});
      product_.run(w_, q_, options_.looks);
      const Dots dots = all.get();
      look(pe_);  // else what handlers have sent on to others would lie here until all below is computed
      if (!goes_on(history, dots.gamma)) return history;
      const auto [alpha, beta] = steps.next(dots);
      part = {};
      for_each_row([&, alpha = alpha, beta = beta](std::ptrdiff_t row, std::ptrdiff_t columns) {
        update_pipelined(alpha, beta, columns, x_.row(row), r_.row(row), p_.row(row), s_.row(row), w_.row(row),
                         z_.row(row), q_.row(row));
        part.gamma += dot(r_.row(row), r_.row(row), columns);
        part.delta += dot(w_.row(row), r_.row(row), columns);
      });
      charge(13);
      if (options_.replace > 0 && iteration % options_.replace == 0) {
        product_.run(x_, r_, 0);
        for_each([&](std::ptrdiff_t row, std::ptrdiff_t i) { r_.row(row)[i] = b_.row(row)[i] - r_.row(row)[i]; });
        charge(3);
        part.delta = product_.run(r_, w_, 0);
        part.gamma = norm2(r_);
        product_.run(p_, s_, 0);
        product_.run(s_, z_, 0);
      }
    }
  }

  /// The two coefficients of an iteration, of Chronopoulos and Gear's.
  class Steps {
   public:
    struct Both {
      double alpha, beta;
    };
    Both next(const Dots& dots) {
      const double beta = first_ ? 0 : dots.gamma / gamma_;
      alpha_ = dots.gamma / (first_ ? dots.delta : dots.delta - beta * dots.gamma / alpha_);
      gamma_ = dots.gamma;
      first_ = false;
      return {alpha_, beta};
    }

   private:
    bool first_ = true;
    double gamma_ = 0, alpha_ = 0;
  };

  /// Stores the residual; `gamma` is its square.
  bool goes_on(History& history, double gamma) const {
    const double residual = std::sqrt(gamma) / b_norm_;
    history.residuals.push_back(residual);
    history.converged = residual <= options_.tolerance;
    return !history.converged && std::isfinite(residual) && history.iterations() < iterations_max_;
  }

  double sum(double part) { return allreduce(pe_, part, std::plus<>()); }

  template <class F>
  void for_each_row(F f) {
    for (std::ptrdiff_t row = 0; row < area_.rows; ++row) f(row, area_.columns);
  }
  template <class F>
  void for_each(F f) {
    for_each_row([&](std::ptrdiff_t row, std::ptrdiff_t columns) {
      for (std::ptrdiff_t i = 0; i < columns; ++i) f(row, i);
    });
  }
  double norm2(const Vector& v) {
    double part = 0;
    for_each_row([&](std::ptrdiff_t row, std::ptrdiff_t columns) { part += dot(v.row(row), v.row(row), columns); });
    return part;
  }
  /// Passes over so many words of each cell.
  void charge(std::ptrdiff_t words) { processor_.charge(words * area_.rows * area_.columns); }

  Pe& pe_;
  SolverOptions options_;
  Product& product_;
  Processor& processor_;
  std::ptrdiff_t n_;
  Area area_;
  Vector b_;
  Vector x_{area_, 64}, r_{area_, 128}, p_{area_, 192}, s_{area_, 256}, w_{area_, 320}, z_{area_, 384}, q_{area_, 448};
  double b_norm_ = 0;
  std::size_t iterations_max_ = 0;
};

}  // namespace headway::cg
