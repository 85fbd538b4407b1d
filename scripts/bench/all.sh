#!/usr/bin/env bash
# Runs every bench at full size on one thread and writes scripts/bench/RESULTS.md. About an hour on one core.
#   scripts/bench/all.sh [FOLDER]     FOLDER: where the finished table lies or is made (default: a fresh one)
# PYTHON chooses the interpreter; the small models must be there (graphcontext prepare).
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python}
folder=${1:-$(mktemp -d)}
out=scripts/bench/RESULTS.md
simd=$(grep -om1 -e avx512f -e avx2 /proc/cpuinfo | sort | head -1 || true)

run() { # bench, arguments …
    local bench=$1
    shift
    echo "bench: $bench" >&2
    printf '## %s\n\n`python scripts/bench/%s.py%s`\n\n' "$bench" "$bench" "${*:+ ${*//$folder/FOLDER}}"
    "$python" "scripts/bench/$bench.py" "$@"
    echo
}

{
    echo "<!-- Written by scripts/bench/all.sh -->"
    echo "# Measured speed, the papers' way beside ours"
    echo
    echo "$(date +%F), a machine of $(nproc) CPU cores (${simd:-$(uname -m)}), one thread each, medians of three."
    echo "Times are CPU seconds; ratios carry over to other machines, times do not."
    echo
    run pagerank
    run question_graph --paper-nodes 5000
    run lexical
    run passage_graphs
    [ -z "${GRAPHCONTEXT_DATA:-}" ] || run traversal
    run rouge
    run read_dump --megabytes 500
    run pdf_folder --pages 500
    run generation
    run agent_calls
    run training_memory
    run training_loop
    run bucketing ${GRAPHCONTEXT_DATA:+scale=small dataset=stackexchange} trainer.micro_batch_size=2
    run finished_table --folder "$folder"
} >"$out.part"
cat -s "$out.part" >"$out"
rm "$out.part"
echo "written: $out"
