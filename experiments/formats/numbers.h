#pragma once
/// The numbers that the formats hold: how far they reach and how they lie.

#include <string>

#include "experiments/frame/record.h"
#include "fp16/format.h"

namespace experiments::formats {

/// log2 of the largest number over the smallest positive one, to four decimals, which sim::log2_of has right.
double range_octaves(const fp16::Format& format);

/// "infinities, NaNs": what the codes stand for besides finite numbers.
std::string special_values(const fp16::Format& format);

/// formats.csv: a row for each format.
void write_formats(RunRecord& record);

/// octaves.csv: how many numbers each format has in each octave.
void write_octaves(RunRecord& record);

/// values.csv: every positive number of the 8-bit and smaller formats.
void write_values(RunRecord& record);

/// Whether in every format of up to 16 bits the codes, all decoded, are what fp16::Format computes of them.
bool codes_agree();

}  // namespace experiments::formats
