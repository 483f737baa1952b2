# SPDX-License-Identifier: BSD-3-Clause
"""The recipes agree with the build, and other programs accept them.

YAML needs PyYAML. py-rattler-build, cffconvert, kubectl and apt check their own formats; missing ones are skipped.
"""

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PACKAGING = TOP / "packaging"
try:
    import yaml
except ImportError:
    yaml = None
needs_yaml = unittest.skipUnless(yaml, "no PyYAML")

CMAKE = "\n".join(path.read_text() for path in [TOP / "CMakeLists.txt", *(TOP / "cmake").glob("*.cmake"),
                                                *(TOP / "src").rglob("CMakeLists.txt")])
OPTIONS = set(re.findall(r"(?:^|\n) *(?:option|cmake_dependent_option)\((HEADWAY_\w+)", CMAKE))
VERSION = re.search(r"project\(headway VERSION ([\d.]+)", CMAKE)[1]


def text(path: str) -> str:
    return (PACKAGING / path).read_text()


def shell_accepts(script: str) -> None:
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    if checked.returncode:
        raise AssertionError(f"bash: {checked.stderr}\nin: {script}")


def apt_packages(script: str) -> set[str]:
    found: set[str] = set()
    for match in re.findall(r"apt-get install -y --no-install-recommends ((?:\\\n|[^\n&])+)", script):
        found |= set(match.replace("\\\n", " ").split())
    return found


def run_lines(stage: str) -> list[str]:
    return re.findall(r"^RUN ((?:[^\n]*\\\n)*[^\n]*)", stage, re.M)


class Recipe:
    """Stands for Spack's CMakePackage, with the calls that the recipe uses."""

    def __init__(self, given: dict[str, bool]) -> None:
        self.given = given

    def define(self, name: str, value: bool) -> str:
        return f"-D{name}:BOOL={'ON' if value else 'OFF'}"

    def define_from_variant(self, name: str, variant: str) -> str:
        return self.define(name, self.given[variant])


class Spack(unittest.TestCase):
    def setUp(self) -> None:
        self.variants: dict[str, bool] = {}
        self.conditions: list[str] = []
        self.versions: list[str] = []
        stub = types.ModuleType("spack.package")
        vars(stub).update(
            CMakePackage=Recipe, license=lambda name: None, maintainers=lambda *names: None,
            generator=lambda name: None,
            version=lambda name, **where: self.versions.append(name),
            variant=lambda name, default, description: self.variants.__setitem__(name, default),
            depends_on=lambda spec, type=None, when=None: self.conditions.append(when or ""),
            conflicts=lambda spec, msg: None)
        path = PACKAGING / "spack/packages/headway/package.py"
        names = {"__file__": str(path), "__name__": "package"}
        sys.modules["spack"], sys.modules["spack.package"] = types.ModuleType("spack"), stub
        exec(compile(path.read_text(), str(path), "exec"), names)
        self.recipe = names["Headway"]

    def test_each_choice_of_variants_gives_options_that_the_build_has(self) -> None:
        self.assertEqual(set(self.variants), {"mpi", "ucx", "sim", "tools"})
        for values in itertools.product([False, True], repeat=len(self.variants)):
            given = dict(zip(self.variants, values))
            options = dict(re.match(r"-D(\w+):BOOL=(ON|OFF)$", one).groups() for one in self.recipe(given).cmake_args())
            self.assertLessEqual(set(options), OPTIONS)
            for variant, value in given.items():
                self.assertEqual(options[f"HEADWAY_{variant.upper()}"], "ON" if value else "OFF")

    def test_conditions_name_variants(self) -> None:
        named = {match for when in self.conditions for match in re.findall(r"[+~](\w+)", when)}
        self.assertEqual(named, set(self.variants))

    def test_the_source_is_the_clone_that_the_recipe_lies_in(self) -> None:
        self.assertEqual(self.recipe.git, f"file://{TOP}")
        self.assertTrue(self.versions)


@needs_yaml
class Conda(unittest.TestCase):
    def setUp(self) -> None:
        self.recipe = yaml.safe_load(text("conda/recipe.yaml"))

    def test_it_has_the_version_and_the_options_of_the_build(self) -> None:
        self.assertEqual(self.recipe["context"]["version"], VERSION)
        used = set(re.findall(r"-D(HEADWAY_\w+)=", " ".join(self.recipe["build"]["script"])))
        self.assertTrue(used)
        self.assertLessEqual(used, OPTIONS)
        self.assertTrue((TOP / self.recipe["about"]["license_file"]).is_file())
        self.assertEqual((PACKAGING / "conda" / self.recipe["source"]["path"]).resolve(), TOP)

    def test_rattler_build_renders_it(self) -> None:
        try:
            import rattler_build
        except ImportError:
            self.skipTest("no py-rattler-build")
        recipe = rattler_build.Stage0Recipe.from_file(str(PACKAGING / "conda/recipe.yaml"))
        variants = rattler_build.VariantConfig({"c_compiler": ["gcc"], "cxx_compiler": ["gxx"]})
        (rendered,) = recipe.render(variants)
        self.assertEqual(str(rendered.recipe.package.version), VERSION)
        self.assertIn("mpich", rendered.recipe.requirements.to_dict()["host"])


class Containers(unittest.TestCase):
    docker = text("container/Dockerfile")
    stages = re.split(r"^FROM .*$", docker, flags=re.M)[1:]
    post = re.search(r"%post\n(.*?)\n%", text("container/headway.def"), re.S)[1]

    def test_shells_accept_their_commands(self) -> None:
        commands = [line for stage in self.stages for line in run_lines(stage)]
        self.assertEqual(len(commands), 4)
        for command in [*commands, self.post]:
            shell_accepts(command)

    def test_the_build_has_the_packages_that_make_needs(self) -> None:
        setup = (TOP / "scripts/setup").read_text()
        names = setup.partition("declare -A packages=(")[2]
        things = re.search(r"^things_demo=\((.*)\)", setup, re.M)[1].split()
        for thing in [*things, "context"]:
            package = re.search(rf"^ +\[{thing}\]=\"(\S+) \S+ \S+ \S+ \S+\"", names, re.M)[1]
            self.assertIn(package, apt_packages(self.stages[0]), "Dockerfile")
            self.assertIn(package, apt_packages(self.post), "headway.def")

    def test_apt_knows_each_package(self) -> None:
        release = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
        (suite,) = set(re.findall(r"debian:(\w+)-slim", self.docker + text("container/headway.def")))
        if f"VERSION_CODENAME={suite}\n" not in release or not shutil.which("apt-cache"):
            self.skipTest(f"this is no Debian {suite}")
        wanted = sorted(apt_packages(self.docker) | apt_packages(self.post))
        shown = subprocess.run(["apt-cache", "policy", *wanted], text=True, capture_output=True).stdout
        self.assertEqual(wanted, sorted(re.findall(r"^(\S+):\n  Installed: .*\n  Candidate: \d", shown, re.M)))

    def test_presets_targets_and_files_exist(self) -> None:
        presets = {one["name"] for one in json.loads((TOP / "CMakePresets.json").read_text())["configurePresets"]}
        for script in (self.docker, self.post):
            self.assertLessEqual(set(re.findall(r"--preset (\w+)", script)), presets)
            self.assertLessEqual(set(re.findall(r"-D(\w+)=", script)), OPTIONS)
            targets = re.findall(r"--target (\w+)", script)
            self.assertTrue(targets)
            for target in targets:
                self.assertIn(f"add_custom_target({target} ", CMAKE)


@needs_yaml
class Kubernetes(unittest.TestCase):
    def setUp(self) -> None:
        self.job = yaml.safe_load(text("kubernetes/mpijob.yaml"))
        self.replicas = self.job["spec"]["mpiReplicaSpecs"]
        self.containers = {name: one["template"]["spec"]["containers"][0] for name, one in self.replicas.items()}

    def test_there_is_a_slot_for_each_pe(self) -> None:
        self.assertEqual((self.job["apiVersion"], self.job["kind"]), ("kubeflow.org/v2beta1", "MPIJob"))
        args = [str(arg) for arg in self.containers["Launcher"]["args"]]
        slots = self.job["spec"]["slotsPerWorker"]
        self.assertEqual(int(args[args.index("-n") + 1]), self.replicas["Worker"]["replicas"] * slots)
        self.assertEqual(self.containers["Worker"]["resources"]["limits"]["cpu"], slots)

    def test_it_uses_the_image_as_the_dockerfile_makes_it(self) -> None:
        docker = text("container/Dockerfile")
        for container in self.containers.values():
            self.assertNotRegex(container["image"], r"[./:]")  # by its name alone, without a host
            self.assertIn(f"--uid {container['securityContext']['runAsUser']} ", docker)
        for path in (self.job["spec"]["sshAuthMountPath"], self.containers["Worker"]["args"][-1]):
            self.assertIn(path, docker)
        (program,) = [arg for arg in self.containers["Launcher"]["args"] if str(arg).startswith("/")]
        self.assertIn(str(Path(program).parents[1]), docker)
        self.assertIn(f"headway_program({Path(program).name} ", (TOP / "apps/CMakeLists.txt").read_text()
                      + "".join(path.read_text() for path in (TOP / "apps").rglob("CMakeLists.txt")))

    def test_kubectl_accepts_the_form_of_the_resource(self) -> None:
        if not shutil.which("kubectl"):
            self.skipTest("no kubectl")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(PACKAGING / "kubernetes/mpijob.yaml", folder)
            (Path(folder) / "kustomization.yaml").write_text("resources: [mpijob.yaml]\n")
            made = subprocess.run(["kubectl", "kustomize", folder], text=True, capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(yaml.safe_load(made.stdout), self.job)


class Others(unittest.TestCase):
    def test_bash_accepts_the_slurm_scripts(self) -> None:
        for script in ("slurm/srun.sbatch", "slurm/headway-run.sbatch"):
            shell_accepts(text(script))

    @needs_yaml
    def test_the_citation_has_what_the_format_requires(self) -> None:
        citation = yaml.safe_load((TOP / "CITATION.cff").read_text())
        self.assertLessEqual({"cff-version", "message", "title", "authors"}, set(citation))
        self.assertEqual((citation["version"], citation["license"]), (VERSION, "BSD-3-Clause"))

    def test_cffconvert_accepts_the_citation(self) -> None:
        command = Path(sys.executable).parent / "cffconvert"
        if not command.exists():
            self.skipTest("no cffconvert")
        checked = subprocess.run([command, "--validate", "-i", TOP / "CITATION.cff"], text=True, capture_output=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()
