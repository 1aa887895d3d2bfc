#!/usr/bin/env python3
"""Show that every function of cuda_fp16.h is in a list of intrinsics.h, or excluded for a reason stated here.

An overload counts by itself: (name, whether a half2 is among its operands or is its result). Operators,
constructors and conversion operators of __half and __half2 are listed by what they call: the header must define
each of them by functions that are in the lists. A list entry that the header does not have is an error too.
"""

import argparse
import re
import subprocess
import sys

EXCLUDED = {
    "__shfl": "without _sync: not on devices of compute capability 7.0 and later",
    "__shfl_up": "without _sync: not on devices of compute capability 7.0 and later",
    "__shfl_down": "without _sync: not on devices of compute capability 7.0 and later",
    "__shfl_xor": "without _sync: not on devices of compute capability 7.0 and later",
}

# The operators of intrinsics.h: what follows operator_, with the number of operands.
OPERATORS = {
    ("+", 2): ["plus"], ("-", 2): ["minus"], ("*", 2): ["multiplies"], ("/", 2): ["divides"],
    ("+=", 2): ["plus_assign"], ("-=", 2): ["minus_assign"], ("*=", 2): ["multiplies_assign"],
    ("/=", 2): ["divides_assign"], ("++", 1): ["increment"], ("--", 1): ["decrement"],
    ("++", 2): ["postfix_increment"], ("--", 2): ["postfix_decrement"], ("-", 1): ["negate"],
    ("+", 1): ["unary_plus"], ("==", 2): ["equal_to"], ("!=", 2): ["not_equal_to"], ("<", 2): ["less"],
    ("<=", 2): ["less_equal"], (">", 2): ["greater"], (">=", 2): ["greater_equal"],
}

# What members do besides calling functions that are listed: casts, choices, and initialising their data.
MEMBER_WORDS = {"static_cast", "__HALF2_TO_UI", "__HALF2_TO_CUI", "NV_IF_ELSE_TARGET", "move", "if", "sizeof", "char",
                "__half", "__half2", "__x", "x", "y"}

SUFFIX = "_half2"


def code_of(text):
    """Without comments and directives."""
    return re.sub(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*(\\\n[^\n]*)*", "", text, flags=re.S | re.M)


def listed(intrinsics):
    """The names in the lists, as the preprocessor gives them."""
    source = f'#include "{intrinsics}"\n#define ROW(name, ...) @name@\n' \
             "FP16_SWEPT_INTRINSICS(ROW) FP16_TABULATED_INTRINSICS(ROW)\n"
    done = subprocess.run(["c++", "-E", "-P", "-x", "c++", "-"], input=source, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return set(re.findall(r"@(\w+)@", done.stdout))


def functions(header):
    """(name, whether of half2) of the functions that the header declares."""
    declared = re.findall(
        r"__CUDA(?:_HOSTDEVICE)?_FP16_DECL__\s+(?:__CUDA_FP16_DEPRECATED__\([^;]*?\)\)\s*)?"
        r"([^;{}()]*?)(\w+)\s*\(([^;{}]*)\)\s*;", header)
    return {(name, bool(re.search(r"\b__half2\b", result + parameters))) for result, name, parameters in declared}


def operators(definitions):
    """(sign, operands, whether of half2) of the operators that are functions."""
    found = re.findall(r"(?<!::)\boperator\s*([-+*/=!<>]+)\s*\(([^)]*__half2?\s*&[^)]*)\)\s*\{", definitions)
    return {(sign, parameters.count(",") + 1, "__half2" in parameters) for sign, parameters in found}


def member_calls(header, definitions):
    """What constructors, assignments and conversions of the two classes call."""
    text = definitions + header
    bodies = re.findall(r"__half2?::operator[^;{]*\{(.*?)\n?\}", definitions, flags=re.S)
    bodies += re.findall(r"__half2?\([^()]*\)\s*:?[^;{}]*\{[^{}]*\}", text)
    return set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", " ".join(bodies)))


def rows_wanted(name, of_half2, overloaded):
    """An overload for half2 that stands beside one for half has a row of its own."""
    suffix = SUFFIX if of_half2 and overloaded else ""
    if name == "atomicAdd":
        return [f"atomicAdd_{memory}{suffix}" for memory in ("global", "shared", "global_unread")]
    return [name + suffix]


def problems(header, definitions, rows):
    names = functions(header)
    overloaded = {name for name, of_half2 in names if of_half2 and (name, False) in names}
    found = []
    for name, of_half2 in sorted(names):
        if name in EXCLUDED:
            continue
        found += [f"{row}: in the header, in no list"
                  for row in rows_wanted(name, of_half2, name in overloaded) if row not in rows]
    for sign, operands, of_half2 in sorted(operators(definitions)):
        for operator in OPERATORS.get((sign, operands), [f"({sign}, {operands} operands)"]):
            if f"operator_{operator}{SUFFIX if of_half2 else ''}" not in rows:
                found.append(f"operator{sign} of {operands}, {'half2' if of_half2 else 'half'}: in no list")
    found += [f"{call}: called by a member of __half or __half2, in no list"
              for call in sorted(member_calls(header, definitions) - MEMBER_WORDS) if call not in rows]
    known = {name for name, _ in names}
    for row in sorted(rows):
        name = re.sub(r"(_global_unread|_global|_shared)?(_half2)?$", "", row)
        if row not in known and name not in known and not row.startswith("operator_"):
            found.append(f"{row}: in a list, not in the header")
    found += [f"{name}: excluded, not in the header" for name in sorted(set(EXCLUDED) - known)]
    return found, len(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--header", required=True, help="cuda_fp16.h, with cuda_fp16.hpp beside it")
    parser.add_argument("--intrinsics", required=True, help="experiments/gpu/probes/intrinsics.h")
    arguments = parser.parse_args()
    with open(arguments.header) as header, open(f"{arguments.header}pp") as definitions:
        found, count = problems(code_of(header.read()), code_of(definitions.read()),
                                listed(arguments.intrinsics))
    for line in found:
        print(line)
    if not found:
        print(f"{count} functions: each is in a list, or excluded ({', '.join(EXCLUDED)})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
