#!/usr/bin/env bash
# How fast trainings run on this machine's GPU and what memory they take: writes results/gpu_training.md and .json.
#   scripts/gpu_training.sh [--steps N] [--tokens N] [--micro N] [--passes N]
#   scripts/gpu_training.sh --cpu-smoke     a tiny model on the CPU: does the script work? Writes nothing
# PYTHON chooses the interpreter; needs graphcontext[train,quantization] and SmolLM2 (graphcontext prepare).
# Minutes on one GPU; without one the cells say so.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${PYTHON:-python}" scripts/gpu_training.py "$@"
