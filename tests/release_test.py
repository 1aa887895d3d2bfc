"""What is written for strangers - contributors, reporters, citers, other people's CI - is true of this checkout.

release_test.py CHECKOUT BUILD
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

CHECKOUT, BUILD = (pathlib.Path(argument) for argument in sys.argv[1:3])
WORKFLOWS = sorted((CHECKOUT / ".github/workflows").glob("*.yml"))
PAGES = [CHECKOUT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/releasing.md",
                                      "docs/stability.md", ".github/pull_request_template.md")]
SPACK = "spack/spack_repo/halflab/packages/halflab/package.py"
MATRIX_PART = "${{ matrix.part }}"


def text_of(name):
    return (CHECKOUT / name).read_text(encoding="utf-8")


def run(*command):
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60)


def parts():
    return run(".ci/run", "--list").stdout.split()


def lab_commands():
    return set(re.findall(r"^  ([a-z]+)\b", run("./lab", "help").stdout, re.MULTILINE))


def function_of(name, script=".ci/run"):
    """The text of a function of a shell script."""
    return re.search(rf"^{name}\(\) \{{.*?^\}}$", text_of(script), re.MULTILINE | re.DOTALL)[0]


def consoles(page):
    """The blocks of a page that are typed by hand."""
    return re.findall(r"^```console\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)


def parts_named_in(text):
    """The words after each .ci/run that is followed by parts, as far as these go."""
    named = []
    for words in re.findall(r"\.ci/run((?: (?:[a-z]\w*|\$\{\{ matrix\.part \}\}))+)", text):
        named += words.replace(MATRIX_PART, "MATRIX").split()
    return named


class ContinuousIntegration(unittest.TestCase):
    def test_parts_are_functions(self):
        script = text_of(".ci/run")
        self.assertGreater(len(parts()), 5)
        for part in parts():
            self.assertRegex(script, rf"(?m)^{part}\(\) \{{")

    def test_an_unknown_part_is_refused_before_anything_runs(self):
        refused = run(".ci/run", "format", "sanitisers")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertEqual(refused.stderr,
                         f"ci: there is no part 'sanitisers'; the parts are: {' '.join(parts())}\n")

    def test_workflows_run_what_there_is(self):
        self.assertTrue(WORKFLOWS)
        everything = "".join(workflow.read_text(encoding="utf-8") for workflow in WORKFLOWS)
        self.assertIn(".ci/run --list", everything)
        self.assertIn("MATRIX", parts_named_in(everything))
        self.assertLessEqual(set(parts_named_in(everything)) - {"MATRIX"}, set(parts()))
        commands = re.findall(r"run: \./lab (\S+)", everything)
        self.assertTrue({"demo", "test"} <= set(commands) <= lab_commands(), commands)

    def test_a_name_of_a_part_goes_as_far_as_the_word(self):
        self.assertEqual(parts_named_in("`.ci/run format sanitizers_programs`, .ci/run clusters: ..."),
                         ["format", "sanitizers_programs", "clusters"])

    def test_parts_that_mount_are_allowed_to(self):
        workflow = text_of(".github/workflows/ci.yml")
        privileged = json.loads(re.search(r"contains\(fromJSON\('([^']*)'\), matrix\.part\) && '--privileged'", workflow)[1])
        self.assertEqual(set(privileged), {"packages", "bochs", "clusters", "campaigns"} & set(parts()))

    def test_packages_are_installed_by_root_or_sudo(self):
        script = ('set -euo pipefail; say() { echo "ci: $*"; }; dpkg-query() { return 1; }; '
                  f'apt-get() {{ echo "apt-get $*" >&2; }}; dpkg() {{ echo "dpkg $*" >&2; }}; {function_of("need")}\n')
        user = {"user": 65534} if os.geteuid() == 0 else {}
        call = lambda before, packages, **how: subprocess.run(["bash", "-c", f"{script}{before}need {packages}"],
                                                              capture_output=True, text=True, **how)
        for packages, first in (("a b", []), ("a b:arm64", ["dpkg --add-architecture arm64"])):
            commands = [*first, "apt-get update", f"apt-get install -y --no-install-recommends {packages}"]
            if user:
                self.assertEqual(call("", packages).stderr.splitlines(), commands)
            with_sudo = call('sudo() { echo "sudo $*" >&2; }; ', packages, **user)
            self.assertEqual((with_sudo.returncode, with_sudo.stderr.splitlines()),
                             (0, [f"sudo {command}" for command in commands]))
            without = call("command() { return 1; }; ", packages, **user)
            self.assertEqual((without.returncode, without.stderr),
                             (2, f"ci: packages are missing; as root: {' && '.join(commands)}\n"))
            self.assertEqual(call("HALFLAB_SKIP_SETUP=1; ", packages, **user).stderr, "")

    def test_a_library_of_another_architecture_does_not_serve(self):
        installed = "installed:libfmt-dev:arm64 installed:cmake:amd64 not-installed:zlib1g-dev:amd64 installed:fonts-dejavu-core:all "
        script = (f"dpkg() {{ echo amd64; }}; dpkg-query() {{ printf '%s' '{installed}'; }}; "
                  f"{function_of('missing_packages', 'lab')}\nmissing_packages libfmt-dev cmake zlib1g-dev 'a|cmake' "
                  "fonts-dejavu-core 'b|c'")
        self.assertEqual(run("bash", "-c", script).stdout.split(), ["libfmt-dev", "zlib1g-dev", "b"])

    def test_the_page_installs_for_aarch64_what_the_part_does(self):
        typed = [block for block in consoles("docs/scale_out.md") if ":arm64" in block]
        self.assertEqual(len(typed), 1)
        packages = re.search(r"apt-get install ((?:[^\n]*\\\n)*[^\n]*)", typed[0])[1].replace("\\", " ").split()
        self.assertGreater(len(packages), 5)
        self.assertLessEqual(set(packages), set(function_of("aarch64").replace("\\", " ").replace(";", " ").split()))


class Pages(unittest.TestCase):
    def test_commands_exist(self):
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            with self.subTest(page.name):
                self.assertLessEqual(set(parts_named_in(text)), set(parts()))
                self.assertLessEqual(set(re.findall(r"\./lab ([a-z]+)", text)), lab_commands())

    def test_contributors_are_told_names_of_tests(self):
        rows = re.findall(r"^\| .* \| (.*) \|$", text_of("CONTRIBUTING.md"), re.MULTILINE)
        names = [name for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row)]
        self.assertGreater(len(names), 10)
        for name in names:
            listed = run("ctest", "--test-dir", str(BUILD), "-N", "-R", name).stdout
            self.assertNotIn("Total Tests: 0", listed, name)

    def test_fuzz_targets_are_those_that_are_built(self):
        cmake = text_of("tests/fuzz/fuzz.cmake")
        built = set(re.findall(r"^halflab_fuzz\((\w+)", cmake, re.MULTILINE))
        built |= set(re.search(r"foreach\(reader ([\w ]+)\)", cmake)[1].split())
        rows = re.findall(r"^\| .* \| (.*) \|$", text_of("SECURITY.md"), re.MULTILINE)
        self.assertEqual({name for row in rows for name in re.findall(r"`(\w+)`", row)}, built)
        counted = text_of("tests/fuzz/executions.csv").split()
        self.assertEqual(counted[0], "target,executions")
        self.assertLessEqual({row.split(",")[0] for row in counted[1:]}, built)

    def test_counts_of_fuzzing_add_up_over_folders_that_end(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            for script in ("run.sh", "keep_counts.sh"):
                shutil.copy(CHECKOUT / "tests/fuzz" / script, folder)
            (folder / "executions.csv").write_text("target,executions\njson,2\n")
            target = folder / "target"
            target.write_text("#!/bin/sh\necho stat::number_of_executed_units: 5\n")
            target.chmod(0o755)
            environment = os.environ | {"HALFLAB_FUZZ_FOLDER": str(folder / "kept")}
            call = lambda *command, **more: subprocess.run(command, env=environment | more, capture_output=True, text=True,
                                                           check=True).stdout
            fuzz = lambda runs: [line for line in call(folder / "run.sh", "json", target, folder,
                                                       HALFLAB_FUZZ_RUNS=str(runs)).splitlines() if line.startswith("json: ")]
            (folder / "kept").mkdir()
            self.assertIn("counted nothing", call(folder / "keep_counts.sh"))
            self.assertEqual(fuzz(7), ["json: 5 executions, 7 in all", "json: 7 executions of 7"])
            self.assertEqual(call(folder / "keep_counts.sh"), "7 executions of 1 targets\n")
            self.assertEqual(fuzz(17), ["json: 5 executions, 12 in all", "json: 5 executions, 17 in all",
                                        "json: 17 executions of 17"])
            self.assertEqual(fuzz(17), ["json: 17 executions of 17"])
            self.assertEqual((folder / "executions.csv").read_text(), "target,executions\njson,7\n")


class Citation(unittest.TestCase):
    def test_all_say_the_same(self):
        citation, archive = text_of("CITATION.cff"), json.loads(text_of(".zenodo.json"))
        field = lambda name: re.search(rf"^{name}: (.*)$", citation, re.MULTILINE)[1]
        version = re.search(r"project\(halflab VERSION ([0-9.]+)", text_of("CMakeLists.txt"))[1]
        self.assertEqual({version}, {field("version"), archive["version"]})
        self.assertEqual((field("title"), field("license")), (archive["title"], archive["license"]))
        self.assertEqual(re.findall(r"^  - name: (.*)$", citation, re.MULTILINE),
                         [creator["name"] for creator in archive["creators"]])
        self.assertEqual(re.findall(r"^  - ([^:\n]+)$", citation, re.MULTILINE), archive["keywords"])
        abstract = re.search(r"^abstract: >-\n((?:  .*\n)+)", citation, re.MULTILINE)[1]
        self.assertEqual(" ".join(abstract.split()), archive["description"])


class Packages(unittest.TestCase):
    """The recipes of packaging/ say what CMakeLists.txt says, which is the one truth."""

    def setUp(self):
        project = text_of("CMakeLists.txt")
        self.version = re.search(r"project\(halflab VERSION ([0-9.]+)", project)[1]
        self.description = re.search(r'DESCRIPTION "([^"]+)"\)', project)[1]
        self.libraries = set(re.findall(r"^find_package\((\w+) REQUIRED\)", text_of("cmake/Dependencies.cmake"),
                                        re.MULTILINE)) - {"Threads"}

    def test_versions(self):
        written = {
            "packaging/vcpkg/halflab/vcpkg.json": r'"version": "([0-9.]+)"',
            "packaging/conda/recipe.yaml": r'(?m)^  version: "([0-9.]+)"$',
            f"packaging/{SPACK}": r'(?m)^    version\("([0-9.]+)"',
            "packaging/Containerfile": r'image\.version="([0-9.]+)"',
        }
        for name, pattern in written.items():
            self.assertEqual(re.findall(pattern, text_of(name)), [self.version], name)

    def test_version_that_selftest_is_quoted_with(self):
        self.assertEqual(re.findall(r"has the bits of Halflab ([0-9.]+)\"", text_of("docs/stability.md")), [self.version])

    def test_versions_in_commands_to_type(self):
        page = text_of("docs/install.md") + text_of(f"packaging/{SPACK}")
        typed = re.findall(r"halflab[-@](\d[\d.]*\d)", page)
        self.assertGreater(len(typed), 3)
        self.assertEqual(set(typed), {self.version})

    def test_spack_finds_the_repository(self):
        """Since its version 2 a repository lies in spack_repo/NAMESPACE, and folders of packages are modules of Python."""
        descriptions = list((CHECKOUT / "packaging/spack").glob("**/repo.yaml"))
        self.assertEqual(len(descriptions), 1)
        repository = descriptions[0].parent
        self.assertRegex(descriptions[0].read_text(), r"(?m)^  api: v2\.\d+$")
        self.assertRegex(descriptions[0].read_text(), rf"(?m)^  namespace: {repository.name}$")
        self.assertEqual(repository.parent.name, "spack_repo")
        self.assertTrue((repository / "packages/halflab/package.py").is_file())
        for page in (text_of("docs/install.md"), text_of(f"{repository.relative_to(CHECKOUT)}/packages/halflab/package.py")):
            self.assertEqual(re.findall(r"spack repo add (\S+)", page), [str(repository.relative_to(CHECKOUT))])

    def test_conan_and_python_read_the_version(self):
        readers = [tomllib.loads(text_of("pyproject.toml"))["tool"]["scikit-build"]["metadata"]["version"]["regex"],
                   re.search(r're\.search\(r"([^"]+)", text\)\[1\]', text_of("packaging/conan/conanfile.py"))[1]]
        for reader in readers:
            self.assertEqual(re.search(reader, text_of("CMakeLists.txt"))[1], self.version)

    def test_conan_exports_what_is_installed(self):
        recipe = text_of("packaging/conan/conanfile.py")
        for lists in ("fp16/install.cmake", "tools/halflab/pages.cmake"):
            installed = re.findall(r"install(?:\(FILES \$\{PROJECT_SOURCE_DIR\}/|_page\()([\w.]+)", text_of(lists))
            self.assertNotEqual(installed, [])
            for file in installed:
                self.assertIn(f'"{file}"', recipe)
        figures = re.search(r"file\(GLOB figures .*/(experiments/\S+)\)", text_of("tools/halflab/pages.cmake"))[1]
        self.assertIn(f'"{figures}"', recipe)

    def test_recipes_in_python_are_python(self):
        for recipe in (CHECKOUT / "packaging").glob("**/*.py"):
            with self.subTest(recipe.name):
                compile(recipe.read_text(encoding="utf-8"), recipe, "exec")

    def test_descriptions_and_licences(self):
        pyproject = tomllib.loads(text_of("pyproject.toml"))["project"]
        port = json.loads(text_of("packaging/vcpkg/halflab/vcpkg.json"))
        self.assertEqual({pyproject["description"], port["description"]}, {self.description})
        for name in ("conda/recipe.yaml", "conan/conanfile.py", SPACK, "Containerfile"):
            recipe = text_of(f"packaging/{name}")
            self.assertIn(self.description, recipe, name)
            self.assertIn("Apache-2.0", recipe, name)
        self.assertEqual(port["license"], "Apache-2.0")
        self.assertIn("License: Apache-2.0", text_of("packaging/debian/copyright"))
        self.assertEqual([author["name"] for author in pyproject["authors"]],
                         re.findall(r"^  - name: (.*)$", text_of("CITATION.cff"), re.MULTILINE))

    def test_recipes_ask_for_the_libraries_that_the_build_looks_for(self):
        names = {"CLI11": "cli11", "nlohmann_json": "nlohmann.json", "fmt": "fmt", "tomlplusplus": "tomlplusplus",
                 "ZLIB": "zlib"}
        self.assertEqual(set(names), self.libraries)
        for name in names.values():
            self.assertRegex(text_of("packaging/conan/conanfile.py"), rf'self\.requires\("{name}/')
            self.assertRegex(text_of(f"packaging/{SPACK}"), rf'depends_on\("{name}(@|-api)')
            self.assertEqual(len(re.findall(rf"(?m)^        - {name}$", text_of("packaging/conda/recipe.yaml"))), 2)

    def test_the_port_configures_the_checkout(self):
        """The portfile with functions in vcpkg's place that write down what they are given."""
        names = ("vcpkg_check_linkage", "vcpkg_cmake_configure", "vcpkg_cmake_install", "vcpkg_cmake_config_fixup",
                 "vcpkg_fixup_pkgconfig", "vcpkg_install_copyright")
        called = "".join(f'function({name})\n  message(STATUS "{name} ${{ARGN}}")\nendfunction()\n' for name in names)
        port = CHECKOUT / "packaging/vcpkg/halflab/portfile.cmake"
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "port.cmake"
            script.write_text(f"{called}set(CURRENT_PACKAGES_DIR {folder})\nset(PORT halflab)\ninclude({port})\n",
                              encoding="utf-8")
            output = run("cmake", "-P", str(script)).stdout
            self.assertTrue((pathlib.Path(folder) / "share/halflab/usage").is_file())
        for name in names:
            self.assertIn(f"-- {name} ", output)
        self.assertIn(f"vcpkg_cmake_configure SOURCE_PATH;{CHECKOUT.resolve()};", output)
        self.assertIn(f"FILE_LIST;{CHECKOUT.resolve()}/LICENSE", output)

    def test_debian_packages_take_the_place_of_earlier_ones_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = pathlib.Path(directory)
            build = lambda **more: subprocess.run(
                [CHECKOUT / "packaging/debian/build.sh", "out"], cwd=folder, capture_output=True, text=True,
                env=os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HALFLAB_PACKAGE_BUILD": "build", **more})
            stubs = {"help2man": "", "file": "", "dpkg-shlibdeps": "", "cmake": f'printf "%s\\n" "$@" >> {folder}/asked',
                     "cpack": 'touch "${@: -1}/halflab_2_amd64.deb"'}
            (folder / "bin").mkdir()
            for name, does in stubs.items():
                (folder / "bin" / name).write_text(f"#!/bin/bash\n{does}\n")
                (folder / "bin" / name).chmod(0o755)
            (folder / "out").mkdir()
            for name in ("thesis.tex", "halflab_1_amd64.deb", "python3-halflab_1_amd64.deb", "other_1_amd64.deb"):
                (folder / "out" / name).touch()
            made = build(HALFLAB_MAINTAINER="A B <a@b.org>")
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertEqual({file.name for file in (folder / "out").iterdir()},
                             {"thesis.tex", "halflab_2_amd64.deb", "other_1_amd64.deb"})
            asked = (folder / "asked").read_text().splitlines()
            self.assertIn("-DHALFLAB_MAINTAINER=A B <a@b.org>", asked)
            self.assertEqual(asked[asked.index("-B") + 1], str((folder / "build").resolve()))
            self.assertEqual(list((folder / "build").iterdir()), [])

    def test_debian_packages_say_at_once_what_they_miss(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("bash", "dirname", "readlink", "realpath", "file"):
                (pathlib.Path(folder) / name).symlink_to(shutil.which(name) or shutil.which("bash"))
            refused = subprocess.run([CHECKOUT / "packaging/debian/build.sh"], capture_output=True, text=True,
                                     env={"PATH": folder})
        self.assertEqual((refused.returncode, refused.stderr),
                         (2, "packaging/debian/build.sh: not found: help2man dpkg-shlibdeps; as root: "
                             "apt-get install help2man file dpkg-dev\n"))
        self.assertIn("# apt-get install help2man file dpkg-dev\n$ packaging/debian/build.sh\n", text_of("docs/install.md"))

    def test_a_bare_system_is_not_made_without_packages(self):
        with tempfile.TemporaryDirectory() as folder:
            refused = run("packaging/try_in_bare_debian.sh", folder, folder, f"{folder}/systems")
            self.assertEqual((refused.returncode, len(refused.stderr.splitlines()), os.listdir(folder)), (2, 1, []),
                             refused.stderr)

    def test_scripts_that_pages_name_exist(self):
        pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md"), CHECKOUT / "packaging/Containerfile"]
        named = {name for page in pages
                 for name in re.findall(r"packaging/[\w/.]*\w", page.read_text(encoding="utf-8"))}
        self.assertGreater(len(named), 5)
        for name in named:
            self.assertTrue((CHECKOUT / name).exists(), name)


class Paper(unittest.TestCase):
    def setUp(self):
        self.body = re.sub(r"<!--.*?-->", "", text_of("paper.md"), flags=re.DOTALL).split("---\n", 2)[2]

    def test_it_says_that_no_gpu_was_there_as_long_as_none_was(self):
        table = text_of("docs/gpu.md").split("<!-- gpu-status:begin -->")[1].split("<!-- gpu-status:end -->")[0]
        results = [line.split("|")[3].strip() for line in table.strip().split("\n\n")[0].splitlines()[2:]]
        self.assertGreater(len(results), 10)
        none_was = set(results) == {"not yet run"}
        for page, claim in (("README.md", "No GPU has run the kernels yet"),
                            ("paper.md", "GPU kernels have run in an emulator only so far")):
            self.assertEqual(claim in " ".join(text_of(page).split()), none_was, page)

    def test_it_has_the_sections_and_the_length_that_the_journal_asks_for(self):
        self.assertEqual(re.findall(r"^# (.*)$", self.body, re.MULTILINE),
                         ["Summary", "Statement of need", "State of the field", "Software design", "Research impact",
                          "References"])
        self.assertTrue(750 <= len(self.body.split()) <= 1750, len(self.body.split()))

    def test_what_is_cited_is_listed_and_can_be_found(self):
        entries = dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", text_of("paper.bib"), re.DOTALL | re.MULTILINE))
        self.assertEqual(set(re.findall(r"@([a-z]+[0-9]*)", self.body)), set(entries))
        for name, entry in entries.items():
            self.assertRegex(entry, r"(?m)^  (doi = \{10\.\d+/\S+\}|url = \{https?://\S+\}),?$", name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
