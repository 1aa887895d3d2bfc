#include "experiments/gpu/validate_gpu/operations.h"

#if __has_include(<cuda_fp16.h>)

#include <cuda_fp16.h>
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif

#include <fmt/format.h>

#include <bit>
#include <concepts>
#include <string>
#include <type_traits>

namespace experiments::validate_gpu {
namespace {

template <typename Type>
Type from_bits(std::uint64_t bits) {
  if constexpr (std::same_as<Type, __half>) {
    return __ushort_as_half(static_cast<unsigned short>(bits));
  } else if constexpr (std::same_as<Type, __half2>) {
    return __halves2half2(from_bits<__half>(bits), from_bits<__half>(bits >> 16));
  } else if constexpr (std::same_as<Type, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::same_as<Type, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<Type>(bits);
  }
}

template <typename Type>
std::uint64_t to_bits(Type value) {
  if constexpr (std::same_as<Type, __half>) {
    return __half_as_ushort(value);
  } else if constexpr (std::same_as<Type, __half2>) {
    return to_bits(__low2half(value)) | to_bits(__high2half(value)) << 16;
  } else if constexpr (std::same_as<Type, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::same_as<Type, bool>) {
    return value;
  } else {
    return std::make_unsigned_t<Type>(value);
  }
}

template <typename Result, typename A>
std::uint64_t call(Result (*function)(A), const Operands& operands) {
  return to_bits(function(from_bits<A>(operands.a)));
}
template <typename Result, typename A, typename B>
std::uint64_t call(Result (*function)(A, B), const Operands& operands) {
  return to_bits(function(from_bits<A>(operands.a), from_bits<B>(operands.b)));
}

template <auto function>
std::uint64_t bits_of(const Operands& operands) {
  return call(function, operands);
}

constexpr HeaderFunctions functions[] = {
    {"hadd", bits_of<__hadd>, bits_of<__hadd2>},
    {"hsub", bits_of<__hsub>, bits_of<__hsub2>},
    {"hmul", bits_of<__hmul>, bits_of<__hmul2>},
    {"hdiv", bits_of<__hdiv>, bits_of<__h2div>},
    {"hadd_rn", bits_of<__hadd_rn>, bits_of<__hadd2_rn>},
    {"hsub_rn", bits_of<__hsub_rn>, bits_of<__hsub2_rn>},
    {"hmul_rn", bits_of<__hmul_rn>, bits_of<__hmul2_rn>},
    {"hadd_sat", bits_of<__hadd_sat>, bits_of<__hadd2_sat>},
    {"hsub_sat", bits_of<__hsub_sat>, bits_of<__hsub2_sat>},
    {"hmul_sat", bits_of<__hmul_sat>, bits_of<__hmul2_sat>},
    {"heq", bits_of<__heq>, bits_of<__heq2>},
    {"heq_mask", nullptr, bits_of<__heq2_mask>},
    {"hbeq", nullptr, bits_of<__hbeq2>},
    {"hne", bits_of<__hne>, bits_of<__hne2>},
    {"hne_mask", nullptr, bits_of<__hne2_mask>},
    {"hbne", nullptr, bits_of<__hbne2>},
    {"hlt", bits_of<__hlt>, bits_of<__hlt2>},
    {"hlt_mask", nullptr, bits_of<__hlt2_mask>},
    {"hblt", nullptr, bits_of<__hblt2>},
    {"hle", bits_of<__hle>, bits_of<__hle2>},
    {"hle_mask", nullptr, bits_of<__hle2_mask>},
    {"hble", nullptr, bits_of<__hble2>},
    {"hgt", bits_of<__hgt>, bits_of<__hgt2>},
    {"hgt_mask", nullptr, bits_of<__hgt2_mask>},
    {"hbgt", nullptr, bits_of<__hbgt2>},
    {"hge", bits_of<__hge>, bits_of<__hge2>},
    {"hge_mask", nullptr, bits_of<__hge2_mask>},
    {"hbge", nullptr, bits_of<__hbge2>},
    {"hequ", bits_of<__hequ>, bits_of<__hequ2>},
    {"hequ_mask", nullptr, bits_of<__hequ2_mask>},
    {"hbequ", nullptr, bits_of<__hbequ2>},
    {"hneu", bits_of<__hneu>, bits_of<__hneu2>},
    {"hneu_mask", nullptr, bits_of<__hneu2_mask>},
    {"hbneu", nullptr, bits_of<__hbneu2>},
    {"hltu", bits_of<__hltu>, bits_of<__hltu2>},
    {"hltu_mask", nullptr, bits_of<__hltu2_mask>},
    {"hbltu", nullptr, bits_of<__hbltu2>},
    {"hleu", bits_of<__hleu>, bits_of<__hleu2>},
    {"hleu_mask", nullptr, bits_of<__hleu2_mask>},
    {"hbleu", nullptr, bits_of<__hbleu2>},
    {"hgtu", bits_of<__hgtu>, bits_of<__hgtu2>},
    {"hgtu_mask", nullptr, bits_of<__hgtu2_mask>},
    {"hbgtu", nullptr, bits_of<__hbgtu2>},
    {"hgeu", bits_of<__hgeu>, bits_of<__hgeu2>},
    {"hgeu_mask", nullptr, bits_of<__hgeu2_mask>},
    {"hbgeu", nullptr, bits_of<__hbgeu2>},
    {"hmax", bits_of<__hmax>, bits_of<__hmax2>},
    {"hmax_nan", bits_of<__hmax_nan>, bits_of<__hmax2_nan>},
    {"hmin", bits_of<__hmin>, bits_of<__hmin2>},
    {"hmin_nan", bits_of<__hmin_nan>, bits_of<__hmin2_nan>},
    {"hneg", bits_of<__hneg>, bits_of<__hneg2>},
    {"habs", bits_of<__habs>, bits_of<__habs2>},
    {"hisnan", bits_of<__hisnan>, bits_of<__hisnan2>},
    {"hisinf", bits_of<__hisinf>, nullptr},
    {"float2half_rn", bits_of<__float2half_rn>, nullptr},
    {"float2half_rz", bits_of<__float2half_rz>, nullptr},
    {"float2half_rd", bits_of<__float2half_rd>, nullptr},
    {"float2half_ru", bits_of<__float2half_ru>, nullptr},
    {"float2half", bits_of<__float2half>, nullptr},
    {"double2half", bits_of<__double2half>, nullptr},
    {"half2float", bits_of<__half2float>, nullptr},
    {"half2char_rz", bits_of<__half2char_rz>, nullptr},
    {"half2uchar_rz", bits_of<__half2uchar_rz>, nullptr},
    {"half2short_rz", bits_of<__half2short_rz>, nullptr},
    {"short2half_rn", bits_of<__short2half_rn>, nullptr},
    {"short2half_rz", bits_of<__short2half_rz>, nullptr},
    {"short2half_rd", bits_of<__short2half_rd>, nullptr},
    {"short2half_ru", bits_of<__short2half_ru>, nullptr},
    {"half2ushort_rz", bits_of<__half2ushort_rz>, nullptr},
    {"ushort2half_rn", bits_of<__ushort2half_rn>, nullptr},
    {"ushort2half_rz", bits_of<__ushort2half_rz>, nullptr},
    {"ushort2half_rd", bits_of<__ushort2half_rd>, nullptr},
    {"ushort2half_ru", bits_of<__ushort2half_ru>, nullptr},
    {"half2int_rz", bits_of<__half2int_rz>, nullptr},
    {"int2half_rn", bits_of<__int2half_rn>, nullptr},
    {"int2half_rz", bits_of<__int2half_rz>, nullptr},
    {"int2half_rd", bits_of<__int2half_rd>, nullptr},
    {"int2half_ru", bits_of<__int2half_ru>, nullptr},
    {"half2uint_rz", bits_of<__half2uint_rz>, nullptr},
    {"uint2half_rn", bits_of<__uint2half_rn>, nullptr},
    {"uint2half_rz", bits_of<__uint2half_rz>, nullptr},
    {"uint2half_rd", bits_of<__uint2half_rd>, nullptr},
    {"uint2half_ru", bits_of<__uint2half_ru>, nullptr},
    {"half2ll_rz", bits_of<__half2ll_rz>, nullptr},
    {"ll2half_rn", bits_of<__ll2half_rn>, nullptr},
    {"ll2half_rz", bits_of<__ll2half_rz>, nullptr},
    {"ll2half_rd", bits_of<__ll2half_rd>, nullptr},
    {"ll2half_ru", bits_of<__ll2half_ru>, nullptr},
    {"half2ull_rz", bits_of<__half2ull_rz>, nullptr},
    {"ull2half_rn", bits_of<__ull2half_rn>, nullptr},
    {"ull2half_rz", bits_of<__ull2half_rz>, nullptr},
    {"ull2half_rd", bits_of<__ull2half_rd>, nullptr},
    {"ull2half_ru", bits_of<__ull2half_ru>, nullptr},
};

}  // namespace

std::span<const HeaderFunctions> cuda_header_functions() {
  return functions;
}

std::string_view cuda_header_version() {
#ifdef CUDART_VERSION
  static const std::string version =
      fmt::format("CUDA {}.{}", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
#else
  static const std::string version = "CUDA of an unknown version";
#endif
  return version;
}

}  // namespace experiments::validate_gpu

#else

namespace experiments::validate_gpu {

std::span<const HeaderFunctions> cuda_header_functions() {
  return {};
}

std::string_view cuda_header_version() {
  return {};
}

}  // namespace experiments::validate_gpu

#endif
