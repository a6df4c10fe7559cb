"""Build the compiled core. GATEKEEPER_BUILD=release|debug|trace|asan picks the variant (see CONTRIBUTING.md)."""

import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = ("vocabulary", "term_matrix", "bm25", "fingerprint")
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "binding": True,
    "embedsignature": True,
}
# No -march=native and no -ffast-math, no contraction: the same scores on every CPU.
RELEASE = ["-O3", "-ffp-contract=off", "-g0"]
CHECKED = {**DIRECTIVES, "boundscheck": True, "wraparound": True, "initializedcheck": True}
# Cython's own array.clone calls memset with NULL and length 0.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize=nonnull-attribute"]
VARIANTS = {
    "release": (RELEASE, [], DIRECTIVES, []),
    "debug": (["-O0", "-g", "-ffp-contract=off"], [], CHECKED, []),
    "trace": (["-O1", "-g", "-ffp-contract=off"], [], {**CHECKED, "linetrace": True}, [("CYTHON_TRACE_NOGIL", "1")]),
    "asan": (
        ["-O1", "-g", "-ffp-contract=off", *SANITIZERS, "-fno-sanitize-recover=undefined"],
        SANITIZERS,
        CHECKED,
        [],
    ),
}

variant = os.environ.get("GATEKEEPER_BUILD", "release")
if variant not in VARIANTS:
    sys.exit(f"GATEKEEPER_BUILD must be one of {', '.join(VARIANTS)}, got {variant!r}")
compile_args, link_args, directives, macros = VARIANTS[variant]
if sys.platform == "win32":
    compile_args, link_args = ["/O2", "/fp:precise"], []

setup(
    ext_modules=cythonize(
        [
            Extension(
                f"gatekeeper._core.{name}",
                [f"_core/{name}.pyx"],
                extra_compile_args=compile_args,
                extra_link_args=link_args,
                define_macros=macros,
            )
            for name in KERNELS
        ],
        compiler_directives=directives,
        build_dir=f"build/{variant}/cython",
    ),
    # a variant must never be built from the C files or objects of another
    options={"build": {"build_base": f"build/{variant}"}, "build_ext": {"force": True}},
)
