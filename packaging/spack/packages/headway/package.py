# SPDX-License-Identifier: BSD-3-Clause
"""Spack recipe of Headway, for the clone of the repository that it lies in."""

from pathlib import Path

from spack.package import *


class Headway(CMakePackage):
    """C++20 library for parallel programs that send many small messages."""

    git = f"file://{Path(__file__).resolve().parents[4]}"

    license("BSD-3-Clause")
    maintainers()

    version("main", branch="main")

    variant("mpi", default=True, description="Plug-in for the MPI of this build")
    variant("ucx", default=True, description="Plug-in for UCX: frames between hosts without an MPI")
    variant("sim", default=True, description="Transport sim: simulated networks")
    variant("tools", default=True, description="The headway command, applications and benchmarks")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("fmt@9:", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("ucx", when="+ucx")
    depends_on("boost+context", when="+sim")
    depends_on("cli11@2.1:", type="build", when="+tools")
    depends_on("nlohmann-json@3.11:", type="build", when="+tools")
    depends_on("zlib-api", when="+tools")
    depends_on("python@3.10:", type="run", when="+tools")
    depends_on("py-jinja2", type="run", when="+tools")

    conflicts("%gcc@:11", msg="Headway needs GCC 12 or later")
    conflicts("%clang@:15", msg="Headway needs Clang 16 or later")
    conflicts("platform=darwin", msg="Headway needs Linux")
    conflicts("platform=windows", msg="Headway needs Linux")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("HEADWAY_TESTS", False),
            self.define_from_variant("HEADWAY_MPI", "mpi"),
            self.define_from_variant("HEADWAY_UCX", "ucx"),
            self.define_from_variant("HEADWAY_SIM", "sim"),
            self.define_from_variant("HEADWAY_TOOLS", "tools"),
        ]
