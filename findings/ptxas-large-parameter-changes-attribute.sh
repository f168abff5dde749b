#!/usr/bin/env bash
# One large parameter changes how a cubin describes all parameters of a kernel.
#
# Expected: `.nv.info.KERNEL` of a cubin has an entry of attribute 0x17 (EIATTR_KPARAM_INFO) per parameter, with
#   its offset, and its size in the upper bits of a word of flags.
# Happens: where one parameter is larger than 4 KiB, no parameter has that entry: all have attribute 0x45, in
#   which the size is 16 bits by itself. Cubins of cuTile (tileiras 13.5) have 0x45 for small parameters too.
# Version: ptxas 12.9.86 (nvidia-cuda-nvcc-cu12), sm_90.
# Seen: 64-byte parameter: 3 entries of 0x17, 0 of 0x45, sizes 8 4 64
#       5000-byte parameter: 0 entries of 0x17, 3 of 0x45, sizes 8 4 5000
# Why it matters: a reader that knows 0x17 alone sees a kernel without parameters.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv environment
environment/bin/pip install --quiet nvidia-cuda-nvcc-cu12==12.9.86
ptxas=$(find environment -name ptxas -type f | head -1)
cat >kernel.ptx <<'PTX'
.version 8.1
.target sm_90
.address_size 64
.visible .entry store(.param .u64 x, .param .u32 count, .param .align 64 .b8 table[SIZE])
{
    .reg .u64 %a;
    .reg .u32 %v;
    ld.param.u64 %a, [x];
    ld.param.u32 %v, [count];
    st.global.u32 [%a], %v;
    ret;
}
PTX
cat >read.py <<'PYTHON'
import struct
import sys

data = open(sys.argv[1], "rb").read()
start, (entry, count, names) = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<HHH", data, 58)
sections = [struct.unpack_from("<IIQQQQ", data, start + entry * i) for i in range(count)]
found = {0x17: {}, 0x45: {}}
for name, _, _, _, offset, size in sections:
    at = sections[names][4] + name
    if data[at : data.index(b"\0", at)] != b".nv.info.store":
        continue
    position = offset
    while position < offset + size:
        form, attribute, length = struct.unpack_from("<BBH", data, position)
        content = data[position + 4 : position + 4 + length] if form == 4 else b""
        position += 4 + len(content)
        if attribute == 0x17:
            _, number, _, flags = struct.unpack("<IHHI", content)
            found[attribute][number] = flags >> 18
        elif attribute == 0x45:
            _, number, _, bytes_, _ = struct.unpack("<IHHHH", content)
            found[attribute][number] = bytes_
sizes = {**found[0x17], **found[0x45]}
print(f"{len(found[0x17])} entries of 0x17, {len(found[0x45])} of 0x45, sizes", *(sizes[i] for i in sorted(sizes)))
PYTHON
{
    for size in 64 5000; do
        sed "s/SIZE/$size/" kernel.ptx >sized.ptx
        "$ptxas" -arch=sm_90 sized.ptx -o sized.cubin
        echo "$size-byte parameter: $(python3 read.py sized.cubin)"
    done
} | tee output
diff output - <<'SEEN'
64-byte parameter: 3 entries of 0x17, 0 of 0x45, sizes 8 4 64
5000-byte parameter: 0 entries of 0x17, 3 of 0x45, sizes 8 4 5000
SEEN
