#!/usr/bin/env python3
"""The PTX checker must find what is planted here."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_ptx

ENTRY = """
.visible .entry _Z{length}{name}P6__half(
    .param .u64 p
)
{{
    .reg .b16 %rs<9>;
    ld.global.u16 %rs1, [%rd1];
    // begin inline asm
    {{ {body} }}
    // end inline asm
    st.global.u16 [%rd1], %rs3;
    ret;
}}
"""

TABLE = """# comment
dot  DotInput   75-    add.rn.f16 mul.rn.f16
dot  __hfma     75-    fma.rn.f16 clz?
dot  __hmin     75-79  min.f32
dot  __hmin     80-    min.f16   # another instruction
mma  DotInput   75-    fma.rn.f16
"""

UNFUSED = "mul.rn.f16 %rs2,%rs1,%rs1; add.rn.f16 %rs3,%rs2,%rs1;"
FUSED = "fma.rn.f16 %rs3,%rs1,%rs1,%rs1;"


def entry(name, body):
    return ENTRY.format(length=len(name), name=name, body=body)


def right():
    return entry("DotInput", UNFUSED) + entry("native___hfma", FUSED) + entry("native___hmin", "min.f16 %rs3,%rs1,%rs1;")


class CheckPtx(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "table.txt").write_text(TABLE)

    def found(self, ptx, target=90):
        return check_ptx.problems(ptx, check_ptx.read_table(self.folder / "table.txt", "dot", target))

    def test_right_instructions_pass(self):
        self.assertEqual(self.found(right()), [])

    def test_contraction(self):
        self.assertEqual(self.found(right().replace(UNFUSED, FUSED)),
                         ["DotInput: add.rn.f16 is missing", "DotInput: mul.rn.f16 is missing",
                          "DotInput: fma.rn.f16 is not wanted"])

    def test_sum_that_may_still_be_contracted(self):
        self.assertEqual(self.found(right().replace("add.rn.f16", "add.f16")),
                         ["DotInput: add.rn.f16 is missing", "DotInput: add.f16 is not wanted"])

    def test_other_rounding(self):
        self.assertEqual(len(self.found(right().replace("fma.rn.f16", "fma.rz.f16"))), 2)

    def test_flush_to_zero(self):
        self.assertEqual(len(self.found(right().replace("fma.rn.f16", "fma.rn.ftz.f16"))), 2)

    def test_float_arithmetic_beside_the_right_instruction(self):
        self.assertEqual(self.found(right().replace(FUSED, FUSED + " @%p1 fma.rn.f32 %f1,%f1,%f1,%f1;")),
                         ["__hfma: fma.rn.f32 is not wanted"])

    def test_kernel_that_does_nothing(self):
        self.assertEqual(self.found(right().replace(FUSED, "")), ["__hfma: fma.rn.f16 is missing"])

    def test_instruction_that_may_be_missing(self):
        self.assertEqual(self.found(right().replace(FUSED, FUSED + " clz.b64 %r1,%rd1;")), [])
        self.assertEqual(self.found(right().replace(UNFUSED, UNFUSED + " clz.b64 %r1,%rd1;")),
                         ["DotInput: clz is not wanted"])

    def test_kernel_without_a_row(self):
        self.assertEqual(len(self.found(right() + entry("native___hfma_sat", FUSED))), 1)

    def test_row_without_a_kernel(self):
        self.assertEqual(self.found(entry("DotInput", UNFUSED) + entry("native___hfma", FUSED)), ["__hmin: no kernel"])

    def test_instruction_of_another_target(self):
        self.assertEqual(self.found(right(), target=75), ["__hmin: min.f32 is missing", "__hmin: min.f16 is not wanted"])

    def test_fused_machine_code(self):
        sass = "Function : _Z8DotInputP6__half\n HMUL2 R0, R1, R2;\n HFMA2.MMA R7, -RZ, RZ, 0, 1;\n{} R3, R0, R4;\nFunction : _Z5otherv\n HFMA2 R1, R2, R3, R4;\n"
        self.assertEqual(check_ptx.sass_problems(sass.format("HADD2"), ["DotInput"]), [])
        for fused in ("HFMA2", "HFMA2.MMA", "FFMA"):
            self.assertEqual(len(check_ptx.sass_problems(sass.format(fused), ["DotInput"])), 1)

    def test_exit_code(self):
        for ptx, code in ((right(), 0), (right().replace(UNFUSED, FUSED), 1)):
            (self.folder / "dot.ptx").write_text(ptx)
            done = subprocess.run([sys.executable, check_ptx.__file__, "--table", self.folder / "table.txt", "--source",
                                   "dot.cu", "--target", "90a", "--ptx", self.folder / "dot.ptx"], capture_output=True)
            self.assertEqual(done.returncode, code)


if __name__ == "__main__":
    unittest.main()
