"""The benches run, at a size at which nothing is told about speed."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[1] / "scripts" / "bench"
SMALL = {
    "pagerank": ["--nodes", "300", "--queries", "9", "--paper-queries", "2"],
    "question_graph": ["--nodes", "400", "--paper-nodes", "100", "--dim", "32"],
    "lexical": ["--passages", "300", "--queries", "20", "--paper-queries", "5"],
    "rouge": ["--pairs", "5"],
    "read_dump": ["--megabytes", "0.2"],
}


@pytest.mark.end_to_end
@pytest.mark.parametrize("bench", SMALL)
def test_the_bench_prints_a_table_and_finds_equal_results(bench, tmp_path):
    command = [sys.executable, str(BENCHES / f"{bench}.py"), *SMALL[bench]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "\n|---|" in done.stdout
    assert "False" not in done.stdout
    if bench == "lexical":
        assert done.stdout.count("| 0 ranks other") == 2
    if bench == "rouge":
        assert done.stdout.count("| 0.0e+00 |") == 2


def test_each_bench_is_in_the_list_of_all():
    called = (BENCHES / "all.sh").read_text()
    for path in BENCHES.glob("*.py"):
        if path.stem not in ("clock", "texts"):
            assert f"run {path.stem}" in called
