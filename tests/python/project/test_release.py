"""One version everywhere, forms that their readers would accept, types that checkers know, and the fault suite."""

from __future__ import annotations

import email
import inspect
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import metadata
from pathlib import Path

import penstock
import pybind11
import pytest
import yaml
from penstock._load.options import LoaderOptions

ROOT = Path(__file__).parents[3]


def run(*command: object, codes: tuple[int, ...] = (0,)) -> str:
    """Of a module of this Python: what it prints."""
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=280)
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


def test_the_version_is_one():
    patterns = {
        "pyproject.toml": r'^version = "(.*)"',
        "CMakeLists.txt": r"^project\(penstock VERSION (\S+) ",
        "CHANGELOG.md": r"^## (\S+)",
        "CITATION.cff": r"^version: (\S+)",
        "conda/recipe.yaml": r'^  version: "(.*)"',
    }
    found = {name: re.search(each, (ROOT / name).read_text(), re.MULTILINE)[1] for name, each in patterns.items()}
    assert set(found.values()) == {penstock.__version__}, found


def test_the_package_says_its_licence():
    said = metadata("penstock")
    assert said["License-Expression"] == "Apache-2.0"
    assert said.get_all("License-File") == ["LICENSE"]
    assert "Apache License" in (ROOT / "LICENSE").read_text()


FORMS = {
    "github-workflows": [
        ".github/workflows/docs.yml",
        ".github/workflows/pull-requests.yml",
        ".github/workflows/wheels.yml",
    ],
    "github-issue-forms": [".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml"],
    "github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
    "citation-file-format": ["CITATION.cff"],
}


@pytest.mark.parametrize("schema", FORMS)
def test_files_have_the_form_that_their_readers_ask_for(schema: str):
    """Every .yml below .github is in FORMS."""
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / ".github").rglob("*.yml")}
    assert found <= {each for files in FORMS.values() for each in files}
    run("-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *(ROOT / each for each in FORMS[schema]))


def test_workflows_build_for_both_processors_and_run_what_is_here():
    jobs = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())["jobs"]
    runners = ["ubuntu-24.04", "ubuntu-24.04-arm"]  # x86-64 and aarch64
    assert jobs["wheels"]["strategy"]["matrix"]["runner"] == runners
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "requirements/dev.txt").read_text(), re.MULTILINE)
    for path in (ROOT / ".github/workflows").iterdir():
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for command in (each["run"] for each in job.get("steps", ()) if "run" in each):
                assert all((ROOT / each).is_file() for each in re.findall(r"(?:scripts/|\.ci/)[\w.]+", command)), (
                    command
                )
                assert set(re.findall(r"grep \^([\w-]+)==", command)) <= set(pinned), command


def test_the_dockerfile_runs_what_is_here():
    """Docker itself is not used here."""
    text = (ROOT / "Dockerfile").read_text()
    said = set(re.findall(r"(?:scripts|examples|requirements)(?:/[\w.]+)*", text))
    assert {"scripts/setup", "scripts/build", "examples/demo/run.py"} <= said
    assert [each for each in said if not (ROOT / each).exists()] == []


def test_the_address_is_written_wherever_it_is_asked_for(tmp_path: Path):
    """In copies of the files that scripts/address changes; no other file has what stands for it."""
    script = (ROOT / "scripts/address").read_text()
    (names,) = re.findall(r"\|g\" (.*)$", script, re.MULTILINE)
    for name in [*names.split(), "scripts/address"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run([tmp_path / "scripts/address", "https://host.test/me/penstock/"], check=True)
    for name in names.split():
        text = (tmp_path / name).read_text()
        assert "https://penstock.example" not in text and "https://host.test/me/penstock" in text, name
    for wrong in ("", "host/me", "http://host/me|x"):
        done = subprocess.run([tmp_path / "scripts/address", wrong], capture_output=True, text=True)
        assert done.returncode != 0 and "host/owner/penstock" in done.stderr
    files = subprocess.run(
        ["git", "-C", ROOT, "grep", "-lF", "https://penstock.example"], capture_output=True, text=True
    )
    others = {"scripts/address", "CONTRIBUTING.md", "docs/decisions.md", "tests/python/project/test_release.py"}
    assert set(files.stdout.split()) <= {*names.split(), *others}


def test_links_of_the_readme_work_on_an_index():
    """As the package's metadata have it: links and images are absolute, code and text are the README's."""
    # The file itself: finders that other packages register give messages whose text is elsewhere.
    (installed,) = Path(penstock.__file__).parents[1].glob("penstock-*.dist-info/METADATA")
    said = email.message_from_string(installed.read_text())
    readme, here = said.get_payload(), (ROOT / "README.md").read_text()
    assert said["Description-Content-Type"] == "text/markdown"
    address = "https://penstock.example"
    pages, files = f"{address}/blob/v{penstock.__version__}/", f"{address}/raw/v{penstock.__version__}/"
    link = re.compile(r"""(!?)\[[^\]]*\]\(([^)\s]+)\)|(src|srcset|href)="([^"\s]+)\"""")
    absolute = 0
    for found in link.finditer(re.sub(r"```.*?```", "", readme, flags=re.DOTALL)):
        target = found[2] or found[4]
        assert target.startswith(("https://", "#")), found[0]
        if target.startswith(address):
            is_image = found[1] == "!" or found[3] in ("src", "srcset")
            assert target.startswith(files if is_image else pages), found[0]
            assert (ROOT / target.partition(f"/v{penstock.__version__}/")[2].partition("#")[0]).exists(), target
            absolute += 1
    assert absolute >= 5
    assert readme.replace(pages, "").replace(files, "").strip() == here.strip()


def test_the_metadata_say_where_things_are():
    said = metadata("penstock")
    labels = {each.partition(",")[0] for each in said.get_all("Project-URL")}
    assert labels == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert {"checkpoint", "pytorch", "tokens"} <= set(said["Keywords"].split(","))
    pythons = [f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)]
    assert set(pythons) <= set(said.get_all("Classifier"))


def test_wheels_are_built_for_all_supported_pythons():
    command = ("--platform", "linux", "--print-build-identifiers", ROOT, "--archs", "x86_64,aarch64")
    pythons = [f"cp3{minor}" for minor in range(10, 15)]
    assert sorted(run("-m", "cibuildwheel", *command).split()) == sorted(
        f"{each}-manylinux_{arch}" for each in pythons for arch in ("x86_64", "aarch64")
    )


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this tree, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    run("-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    (path,) = folder.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        archive.extractall(folder)
    return folder / path.name.removesuffix(".tar.gz")


def test_the_sdist_is_whole(sdist: Path):
    """It has all that git has: the tests with the files that they compare, benchmarks and pages."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    wanted = {each for each in listed.split("\0") if each and (ROOT / each).exists()}
    there = {path.relative_to(sdist).as_posix() for path in sdist.rglob("*") if path.is_file()}
    assert wanted - there == set()
    assert {
        each for each in there if each.endswith((".pyc", ".so", ".o")) or each.startswith(("build/", ".venv"))
    } == set()


def test_the_unpacked_sdist_builds_and_tests_find_their_files_in_it(sdist: Path):
    """It configures, and a golden test passes in it beside the installed package. `make wheel` compiles all of it."""
    build = sdist / "build" / "configured"
    options = [
        "-DPENSTOCK_BUILD_PYTHON=ON",
        f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    command = ["cmake", "-S", sdist, "-B", build, "-G", "Ninja", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    dry = subprocess.run(["ninja", "-C", build, "-n", "_native"], capture_output=True, text=True, timeout=60)
    assert dry.returncode == 0 and "Linking CXX shared module" in dry.stdout, dry.stdout[-2000:]
    said = run("-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={sdist}", "-c", sdist / "pyproject.toml",
               sdist / "tests/python/load/test_golden_orders.py")  # fmt: skip
    assert " passed" in said and "failed" not in said, said


def test_an_extension_that_asks_for_newer_libraries_is_named(tmp_path: Path):
    """scripts/check_wheel.py, of wheels whose library asks for one symbol each."""
    source = tmp_path / "library.c"
    source.write_text("int gettid(void);\nint both(void) { return gettid(); }\n")
    for name, libraries in (("old", []), ("new", []), ("more", ["-lz"])):
        text = (
            source.read_text()
            if name == "new"
            else "const char* zlibVersion(void);\nconst void* f(void) { return zlibVersion(); }\n"
        )
        text = "int getpid(void);\nint f(void) { return getpid(); }\n" if name == "old" else text
        (tmp_path / f"{name}.c").write_text(text)
        library = tmp_path / f"{name}.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / f"{name}.c", *libraries], check=True)
        with zipfile.ZipFile(tmp_path / f"{name}.whl", "w") as wheel:
            wheel.write(library, f"package/{name}.so")
    script = ROOT / "scripts/check_wheel.py"
    assert "package/old.so: GLIBC_2." in run(script, "--glibc", "2.28", tmp_path / "old.whl")
    assert "GLIBC_2.30 is newer than GLIBC_2.28: gettid" in run(
        script, "--glibc", "2.28", tmp_path / "new.whl", codes=(1,)
    )
    assert "newer" not in run(script, "--glibc", "2.34", tmp_path / "new.whl")
    assert "needs libz.so.1" in run(script, "--glibc", "2.28", tmp_path / "more.whl", codes=(1,))


def test_pyright_knows_what_next_gives_and_refuses_wrong_words(tmp_path):
    """`make types` has mypy read the same files. It may take over 5 seconds: it reads the whole package.

    It is pyright's fork basedpyright, whose wheel has all that it needs, with pyright's own rules. What is refused is
    marked, and a mark that is not needed is an error.
    """
    settings = {
        "typeCheckingMode": "standard",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "include": [str(ROOT / "tests" / "typed")],
        "pythonVersion": "3.12",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ("--outputjson", "--pythonpath", sys.executable, "-p", tmp_path)
    report = json.loads(run("-m", "basedpyright", *command, codes=(0, 1)))
    assert report["summary"]["filesAnalyzed"] == 2
    assert [(each["file"], each["range"]["start"]["line"] + 1, each["message"])
            for each in report["generalDiagnostics"] if each["severity"] == "error"] == []  # fmt: skip


def test_the_options_of_a_checker_are_those_of_a_loader():
    taken = set(inspect.signature(penstock.Loader.__init__).parameters) - {"self", "view", "batch_size", "transform"}
    assert set(LoaderOptions.__annotations__) == taken


def test_damaged_and_hostile_files_are_found_or_harmless(tmp_path):
    """`make faults` runs the suite in full, and docs/reliability.md has its figures. Over 5 seconds: each file of each
    kind of dataset is damaged in each way, 200 times in all, and read and verified each time.
    """
    found = tmp_path / "faults.json"
    run(ROOT / "tests" / "faults" / "run.py", "--trials", "1", "--megabytes", "4", "--json", found)
    said = json.loads(found.read_text())
    assert said["bad"] == []
    assert said["trials"] > 200
    assert sum(each.get("found", 0) for each in said["counts"]) > 100
