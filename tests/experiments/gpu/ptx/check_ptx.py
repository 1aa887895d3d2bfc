#!/usr/bin/env python3
"""Compile a CUDA source to PTX for one target and hold the floating-point instructions of each kernel to a table.

A row of the table is: source, kernel, targets, instructions. The kernel is a function of cuda_fp16.h (the
kernels that call it) or a kernel's own name; targets are 75-79 or 80- for compute capabilities in tens; the
instructions are all that compute or convert in floating point, with their rounding, no more and no less, so
that a contraction or another rounding shows; and clz, without which the software arithmetic beside them would
have been compiled away. One with a question mark may be missing. Every kernel of the source must have a row. With cuobjdump, the
machine code of the kernels named by --unfused must have no fused multiply-add either.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

MOVES = {"mov", "ld", "st", "ldu", "atom", "red", "shfl", "selp", "prmt"}
CHECKED = re.compile(r"\.(f16|f16x2|f32|f64|bf16|bf16x2|tf32)\b|^clz\b")
# Not those that multiply the zero register: ptxas loads constants so.
FUSED_SASS = re.compile(r"\b(HFMA2|FFMA|DFMA)[\w.]*\s+\w+\s*,(?!\s*-?RZ\b)")


def opcodes_by_entry(ptx):
    """The set of checked opcodes of each entry function, by its name."""
    ptx = re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.S)
    result = {}
    for entry in re.split(r"\.entry\s+", ptx)[1:]:
        name = re.match(r"[\w$]+", entry).group()
        statements = re.split(r"[;{}\n]", entry.split(")", 1)[1])
        first_words = (re.sub(r"^\s*@!?%\w+\s+", "", s).split(None, 1)[:1] for s in statements)
        # A compiler may count the zeros of the lower half alone.
        opcodes = {re.sub(r"^clz\.b(32|64)$", "clz", word[0]) for word in first_words if word}
        result[name] = {o for o in opcodes
                        if CHECKED.search(o) and not o.startswith(".") and o.split(".")[0] not in MOVES}
    return result


def within(targets, target):
    low, _, high = targets.partition("-")
    return int(low) <= target <= int(high or 10**6)


def read_table(path, source, target):
    """kernel -> the set of its instructions."""
    rows = {}
    with open(path) as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if len(words) >= 3 and words[0] == source and within(words[2], target):
                if words[1] in rows:
                    sys.exit(f"{path}: two rows for {source} {words[1]} on sm_{target}")
                rows[words[1]] = set(words[3:])
    return rows


def belongs_to(entry, kernel):
    """Whether the mangled name of an entry contains the kernel's name or that of the type made for a function."""
    return any(f"{len(name)}{name}" in entry for name in (kernel, f"native_{kernel}"))


def problems(ptx, rows):
    """One line for everything that is not as the table says."""
    entries = opcodes_by_entry(ptx)
    found = []
    for entry, opcodes in entries.items():
        kernels = [k for k in rows if belongs_to(entry, k)]
        if len(kernels) != 1:
            found.append(f"{entry}: {len(kernels)} rows of the table, not one ({' '.join(sorted(opcodes))})")
            continue
        wanted = {o for o in rows[kernels[0]] if not o.endswith("?")}
        allowed = {o.rstrip("?") for o in rows[kernels[0]]}
        found += [f"{kernels[0]}: {opcode} is missing" for opcode in sorted(wanted - opcodes)]
        found += [f"{kernels[0]}: {opcode} is not wanted" for opcode in sorted(opcodes - allowed)]
    found += [f"{k}: no kernel" for k in rows if not any(belongs_to(entry, k) for entry in entries)]
    return found


def sass_problems(sass, unfused):
    """The fused multiply-adds in the machine code of kernels that must have none."""
    found = []
    for function in re.split(r"Function\s*:\s*", sass)[1:]:
        name = re.match(r"\S+", function).group()
        for kernel in unfused:
            if belongs_to(name, kernel):
                found += [f"{kernel}: {fused} in the machine code"
                          for fused in sorted(set(FUSED_SASS.findall(function)))]
    return found


def compile_source(arguments, kind, output):
    command = [arguments.nvcc, *arguments.options.split(";"), f"-I{arguments.include}",
               f"-arch=sm_{arguments.target}", kind, arguments.source, "-o", output]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def machine_code(arguments, folder):
    cubin = os.path.join(folder, "kernels.cubin")
    compile_source(arguments, "-cubin", cubin)
    return subprocess.run([arguments.cuobjdump, "-sass", cubin], check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True)
    parser.add_argument("--source", required=True, help="the .cu file, or with --ptx its name in the table")
    parser.add_argument("--target", required=True, help="such as 90 or 90a")
    parser.add_argument("--ptx", help="check this file instead of compiling")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--options", default="", help="for nvcc, separated by ;")
    parser.add_argument("--include", default=".")
    parser.add_argument("--cuobjdump", default="", help="also check the machine code")
    parser.add_argument("--sass", help="check this file instead of calling cuobjdump")
    parser.add_argument("--unfused", nargs="*", default=[])
    arguments = parser.parse_args()

    name = os.path.splitext(os.path.basename(arguments.source))[0]
    rows = read_table(arguments.table, name, int(arguments.target.rstrip("af")))
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.ptx or os.path.join(folder, "kernels.ptx")
        if not arguments.ptx:
            compile_source(arguments, "-ptx", path)
        with open(path) as ptx:
            found = problems(ptx.read(), rows)
        if arguments.sass:
            with open(arguments.sass) as sass:
                found += sass_problems(sass.read(), arguments.unfused)
        elif arguments.cuobjdump:
            found += sass_problems(machine_code(arguments, folder), arguments.unfused)
    for line in found:
        print(f"{name} sm_{arguments.target}: {line}")
    if not found:
        print(f"{name} sm_{arguments.target}: as stated ({len(rows)} rows)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
