#pragma once
/// What the page asks of the library. Texts are UTF-8 and end with a zero; answers are JSON, and stand until the next call.
/// Errors are exceptions, whose what() is a sentence for the page.

#include <cstddef>
#include <cstdint>

extern "C" {

/// Room for so many bytes, such as a text to ask with.
char* engine_allocate(std::size_t bytes);
void engine_free(char* room);

/// Every scalar format: name, bits of its fields, the borders of its numbers.
const char* engine_formats();

/// What `halflab show` finds of a number, a code or an expression in a format.
const char* engine_show(const char* format, const char* text);

/// The numbers from `low` to `high` of every format, with their values and the trailing zeros of their codes where they are not
/// more than `most`; of `format` also the stretches of equal spacing that are wide enough to be seen.
const char* engine_lines(const char* format, double low, double high, double most);

/// The last operation of an expression, rounded stochastically `count` times by Philox, key `seed`: how many of the first n
/// draws went away from zero, and their mean; null where nothing is to be drawn.
const char* engine_draws(const char* format, const char* text, double seed, double count);

/// What the last operation of an expression gives rounded once, with its product rounded first, and by way of binary32.
const char* engine_ways(const char* format, const char* text);

/// The series of terms that sums know by name; "own" are those of a text.
const char* engine_series();

/// What every way of the library to add up makes of the first `prefix` of `count` terms, and what it loses. `own` has the terms of
/// the series of that name, which are repeated; `seed` is the key of random ones.
const char* engine_sums(const char* format, const char* terms, const char* own, double count, double seed,
                        double prefix);

/// The sums of the first n terms in one of those ways, and exactly, for 32 numbers n up to all.
const char* engine_sum_curve(const char* format, const char* terms, const char* own, double count,
                             double seed, const char* family, const char* name);

/// The block formats and the rules for their scales.
const char* engine_block_formats();

/// A row of numbers in a block format: scales, codes and values, and in every block format what became of the others in the
/// block of number `place`, or of the last one where there are fewer, which is multiplied by 2^exponent.
const char* engine_blocks(const char* format, const char* rule, const char* row, double place,
                          double exponent);

/// 32 numbers from -1 to 1 as a text, by Philox of this key.
const char* engine_random_row(double seed);

/// Ten questions with numbers drawn by Philox of this key, the choices, which of them is right, and the state that shows why.
const char* engine_quiz(double seed);

/// The operations and functions of binary16, by name, with their number of operands.
const char* engine_operations();

/// A hash (FNV-1a, 64 bits) of the results of operation number `index` on samples first .. first + count - 1. Sample i of
/// an operation with one operand of 16 bits is the code i; operands of others are drawn by Philox, key 0, stream = index.
std::uint64_t engine_hash(std::size_t index, std::uint64_t first, std::uint64_t count);
}
