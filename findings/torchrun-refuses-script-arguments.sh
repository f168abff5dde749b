#!/usr/bin/env bash
# torchrun refuses arguments of the script behind it that are prefixes of several of its options.
#
# Expected: what comes after the script's name is the script's, as for python and mpirun.
# Happens: torchrun's parser looks at all words first. One after the script that begins several option names of torchrun
#   is an error; every option has two spellings (--log-dir, --log_dir), so that nearly every prefix begins several. One
#   that begins one name only (--nn of --nnodes), or a whole name (--nnodes), does reach the script.
# Version: torch 2.13.0.
# Seen: --log 3, --max 3, --run x, --nproc 8 after the script: "ambiguous option", the script does not start; --nn 3 and
#   --logging 3 are passed on, and --log 3 with -- in front of it.
# Why it matters: a script that takes --log or --max runs under python and fails under torchrun before its first line,
#   with the usage of another program.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
echo 'import sys; print("script:", *sys.argv[1:])' > "$work/script.py"

run() {
  "$work/venv/bin/torchrun" --nproc-per-node 1 "$work/script.py" "$@" 2>&1 | grep -E "error:|script:" || true
}

for words in "--log 3" "--max 3" "--run x" "--nproc 8"; do
  # shellcheck disable=SC2086
  line=$(run $words)
  echo "$words -> $line"
  [[ $line == *"ambiguous option"* ]]
done
for words in "--nn 3" "--logging 3" "--nnodes 3" "-- --log 3"; do
  # shellcheck disable=SC2086
  line=$(run $words)
  echo "$words -> $line"
  [[ $line == "script: ${words#-- }" ]]
done
echo "as recorded"
