// Functions of AMD's device library (OCKL) that compilers of languages call for the place of a lane:
// what its `workitem.cl` computes. Included before source that includes nothing
// (`wavecast/compile/toolchain.py`), so that it defines no other name.
#pragma once

#define __WC_OCKL extern "C" __attribute__((device, const, always_inline)) inline unsigned long
#define __WC_PLACE(name, kind)                                                                     \
    __WC_OCKL __ockl_get_##name(unsigned i) {                                                      \
        return i == 0   ? __builtin_amdgcn_##kind##_x()                                            \
               : i == 1 ? __builtin_amdgcn_##kind##_y()                                            \
               : i == 2 ? __builtin_amdgcn_##kind##_z()                                            \
                        : 0;                                                                       \
    }
__WC_PLACE(local_id, workitem_id)
__WC_PLACE(group_id, workgroup_id)
#undef __WC_PLACE

// The numbers of workgroups stand first in the implicit arguments (hidden_block_count_x, y, z).
__WC_OCKL __ockl_get_num_groups(unsigned i) {
    return i > 2 ? 1
                 : ((const __attribute__((address_space(4))) unsigned *)
                        __builtin_amdgcn_implicitarg_ptr())[i];
}
__WC_OCKL __ockl_get_local_size(unsigned i) {
    return i == 0   ? __builtin_amdgcn_workgroup_size_x()
           : i == 1 ? __builtin_amdgcn_workgroup_size_y()
           : i == 2 ? __builtin_amdgcn_workgroup_size_z()
                    : 1;
}
__WC_OCKL __ockl_get_global_size(unsigned i) {
    return __ockl_get_num_groups(i) * __ockl_get_local_size(i);
}
__WC_OCKL __ockl_get_global_id(unsigned i) {
    return __ockl_get_group_id(i) * __ockl_get_local_size(i) + __ockl_get_local_id(i);
}
#undef __WC_OCKL
