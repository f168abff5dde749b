#!/usr/bin/env bash
# Triton's cache gives a copied script a kernel whose debug lines name the original.
#
# Expected: the cache key covers everything that is in the compiled file, and the compiled file has the
#   folder and name of the source in its line table (and in TTIR and LLVM IR).
# Happens: the key has the text of the kernel and its first line, no path. A copy of the file in another folder
#   hits the cache and gets line information of the file that was compiled first, which may not exist any more.
#   Five lines more above the kernel make it another entry.
# Version: Triton 3.9.0.
# Seen: two/renamed.py compiles to ".file 1 <folder>/one original.py".
# Why it matters: profilers, debuggers and assembly viewers show the wrong file, or none, after a rename, in a
#   second work tree, or in a container that shares the cache.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet triton==3.9.0
mkdir "$work/one" "$work/two"
cat >"$work/one/original.py" <<'PYTHON'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def increment(x_ptr, n):
    tl.store(x_ptr, n + 1)


kernel = triton.compile(ASTSource(increment, {"x_ptr": "*i32", "n": "i32"}), target=GPUTarget("hip", "gfx942", 64))
print(re.search(r'\.file\s+1 ".*/(\w+)" "(\w+\.py)"', kernel.asm["amdgcn"]).expand(r"\1/\2"))
PYTHON
cp "$work/one/original.py" "$work/two/renamed.py"
(printf '\n\n\n\n\n'; cat "$work/one/original.py") >"$work/two/moved.py"
for script in one/original two/renamed two/moved; do
  named=$(TRITON_DEFAULT_FP_FUSION=1 TRITON_CACHE_DIR="$work/cache" "$work/venv/bin/python" "$work/$script.py")
  echo "$script.py has the lines of $named"
  case $script in
    two/moved) [ "$named" = two/moved.py ] ;;
    *) [ "$named" = one/original.py ] ;;
  esac
done
echo "as recorded"
