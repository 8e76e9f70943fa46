#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The reader of device code finds what is missing: test_device_code.py"""
import unittest
import unittest.mock

import device_code

PRODUCT = "_ZN2pp4cuda8run_bodyINS0_17contraction_tilesINS0_13kernel_sourceI3GPTfEELi2EEEEEvNS0_9argumentsE"
PTX = f""".version 9.0
.visible .entry {PRODUCT}(
\t.param .align 8 .b8 arguments[208]
)
{{
\tcp.async.cg.shared.global [%r1], [%rd2], 16, %r3;
\tmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%f1}}, {{%r1}}, {{%r2}}, {{%f1}};
\tst.global.v4.b32 [%rd1], {{%r1, %r2, %r3, %r4}};
}}
.visible .entry _ZN2pp4cuda10any_kernelEv()
{{
}}
"""
REPORT = "".join(f"""ptxas info    : Compiling entry function '{name}' for 'sm_80'
ptxas info    : Function properties for {name}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
""" for name in (PRODUCT, "_ZN2pp4cuda10any_kernelEv"))


class DeviceCode(unittest.TestCase):
    def setUp(self):
        one = {"contraction_tiles": device_code.FAMILIES["contraction_tiles"]}
        patch = unittest.mock.patch.object(device_code, "FAMILIES", one)
        patch.start()
        self.addCleanup(patch.stop)

    def says(self, *expected, ptx=PTX, report=REPORT):
        self.assertEqual(list(expected), list(device_code.problems(ptx, report)))

    def test_good_code_is_good(self):
        self.says()

    def test_a_missing_instruction_is_told(self):
        self.says(f"{PRODUCT}: no mma.sync", ptx=PTX.replace("mma.sync", "fma.rn"))
        self.says(f"{PRODUCT}: no cp.async of 16 bytes", ptx=PTX.replace(", 16, %r3", ", 4, %r3"))
        self.says(f"{PRODUCT}: no stores of 16 bytes", ptx=PTX.replace("st.global.v4.b32", "st.global.v2.b32"))

    def test_an_access_before_the_wait_is_told(self):
        late = ".target sm_90a\n" + PTX
        self.says(f"{PRODUCT}: accesses memory before griddepcontrol.wait", ptx=late)
        self.says(ptx=late.replace("\tcp.async", "\tld.param.u64 %rd1, [arguments];\n\tgriddepcontrol.wait;\n\tcp.async"))
        self.says(f"{PRODUCT}: accesses memory before griddepcontrol.wait",
                  ptx=late.replace("\tmma", "\tgriddepcontrol.wait;\n\tmma"))
        self.says(ptx=PTX.replace(".version", ".target sm_80\n.version"))

    def test_products_by_wgmma(self):
        name = PRODUCT.replace("8run_body", "9run_roles").replace("17contraction_tiles", "11wgmma_tiles")
        text = PTX.replace(PRODUCT, name).replace("\tmma.sync.aligned", "\tcp.async.bulk.tensor.2d.x;\n" + "\twgmma.mma_async.x;\n" * 4 + "\tneg")
        report = REPORT.replace(PRODUCT, name)
        with unittest.mock.patch.object(device_code, "FAMILIES", device_code.WGMMA):
            self.says(ptx=text, report=report)
            self.says(f"{name}: no copies of boxes", ptx=text.replace("bulk.tensor", "bulk"), report=report)
            self.says(f"{name}: 5 multiplications in its code, not 4", ptx=text.replace("neg", "wgmma.mma_async.x;\n\tneg"), report=report)
            self.says(f"{name}: an mma.sync", ptx=text.replace("neg", "mma.sync."), report=report)
            line = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"
            self.says("ptxas: " + line, ptx=text, report=report + line + "\n")

    def test_spills_are_told(self):
        self.says(f"{PRODUCT}: spills 8 bytes, loads 0", report=REPORT.replace("0 bytes spill stores", "8 bytes spill stores", 1))

    def test_what_was_not_looked_at_is_told(self):
        self.says("there is no contraction_tiles", ptx=PTX.replace("17contraction_tiles", "7concats"),
                  report=REPORT.replace("17contraction_tiles", "7concats"))
        self.says(f"{PRODUCT}: nothing is reported of it", report=REPORT.replace("spill stores", "spills", 1))


if __name__ == "__main__":
    unittest.main()
