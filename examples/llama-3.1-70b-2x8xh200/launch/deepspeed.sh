#!/usr/bin/env bash
# Run this on one node; it reaches the others by ssh, as launch/hostfile lists them. Arguments go to train.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec deepspeed --hostfile launch/hostfile --no_local_rank train.py "$@"
