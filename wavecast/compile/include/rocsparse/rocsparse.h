// rocSPARSE. The functions are computed on the host (docs/hip.md, "Libraries").
#pragma once

#include <hip/hip_complex.h>
#include <wavecast/sparse_call.h>

#define ROCSPARSE_VERSION_MAJOR 4
#define ROCSPARSE_VERSION_MINOR 0
#define ROCSPARSE_VERSION_PATCH 0

typedef int rocsparse_int;
typedef hipFloatComplex rocsparse_float_complex;
typedef hipDoubleComplex rocsparse_double_complex;
typedef enum rocsparse_status_ {
    rocsparse_status_success = 0, rocsparse_status_invalid_handle = 1,
    rocsparse_status_not_implemented = 2, rocsparse_status_invalid_pointer = 3,
    rocsparse_status_invalid_size = 4, rocsparse_status_memory_error = 5,
    rocsparse_status_internal_error = 6, rocsparse_status_invalid_value = 7,
    rocsparse_status_arch_mismatch = 8, rocsparse_status_zero_pivot = 9,
    rocsparse_status_not_initialized = 10, rocsparse_status_type_mismatch = 11,
    rocsparse_status_requires_sorted_storage = 12, rocsparse_status_thrown_exception = 13,
    rocsparse_status_continue = 14
} rocsparse_status;
typedef enum rocsparse_operation_ {
    rocsparse_operation_none = 111, rocsparse_operation_transpose = 112,
    rocsparse_operation_conjugate_transpose = 113
} rocsparse_operation;
typedef enum rocsparse_index_base_ {
    rocsparse_index_base_zero = 0, rocsparse_index_base_one = 1
} rocsparse_index_base;
typedef enum rocsparse_matrix_type_ {
    rocsparse_matrix_type_general = 0, rocsparse_matrix_type_symmetric = 1,
    rocsparse_matrix_type_hermitian = 2, rocsparse_matrix_type_triangular = 3
} rocsparse_matrix_type;
typedef enum rocsparse_diag_type_ {
    rocsparse_diag_type_non_unit = 0, rocsparse_diag_type_unit = 1
} rocsparse_diag_type;
typedef enum rocsparse_fill_mode_ {
    rocsparse_fill_mode_lower = 0, rocsparse_fill_mode_upper = 1
} rocsparse_fill_mode;
typedef enum rocsparse_storage_mode_ {
    rocsparse_storage_mode_sorted = 0, rocsparse_storage_mode_unsorted = 1
} rocsparse_storage_mode;
typedef enum rocsparse_action_ {
    rocsparse_action_symbolic = 0, rocsparse_action_numeric = 1
} rocsparse_action;
typedef enum rocsparse_direction_ {
    rocsparse_direction_row = 0, rocsparse_direction_column = 1
} rocsparse_direction;
typedef enum rocsparse_analysis_policy_ {
    rocsparse_analysis_policy_reuse = 0, rocsparse_analysis_policy_force = 1
} rocsparse_analysis_policy;
typedef enum rocsparse_solve_policy_ { rocsparse_solve_policy_auto = 0 } rocsparse_solve_policy;
typedef enum rocsparse_pointer_mode_ {
    rocsparse_pointer_mode_host = 0, rocsparse_pointer_mode_device = 1
} rocsparse_pointer_mode;
typedef enum rocsparse_indextype_ {
    rocsparse_indextype_u16 = 1, rocsparse_indextype_i32 = 2, rocsparse_indextype_i64 = 3
} rocsparse_indextype;
typedef enum rocsparse_datatype_ {
    rocsparse_datatype_f32_r = 151, rocsparse_datatype_f64_r = 152,
    rocsparse_datatype_f32_c = 154, rocsparse_datatype_f64_c = 155,
    rocsparse_datatype_i8_r = 160, rocsparse_datatype_u8_r = 161,
    rocsparse_datatype_i32_r = 162, rocsparse_datatype_u32_r = 163
} rocsparse_datatype;
typedef enum rocsparse_format_ {
    rocsparse_format_coo = 0, rocsparse_format_coo_aos = 1, rocsparse_format_csr = 2,
    rocsparse_format_csc = 3, rocsparse_format_ell = 4, rocsparse_format_bell = 5,
    rocsparse_format_bsr = 6
} rocsparse_format;
typedef enum rocsparse_order_ {
    rocsparse_order_row = 0, rocsparse_order_column = 1
} rocsparse_order;
typedef enum rocsparse_spmat_attribute_ {
    rocsparse_spmat_fill_mode = 0, rocsparse_spmat_diag_type = 1,
    rocsparse_spmat_matrix_type = 2, rocsparse_spmat_storage_mode = 3
} rocsparse_spmat_attribute;
typedef enum rocsparse_itilu0_alg_ {
    rocsparse_itilu0_alg_default = 0, rocsparse_itilu0_alg_async_inplace = 1,
    rocsparse_itilu0_alg_async_split = 2, rocsparse_itilu0_alg_sync_split = 3,
    rocsparse_itilu0_alg_sync_split_fusion = 4
} rocsparse_itilu0_alg;
typedef enum rocsparse_itilu0_option_ {
    rocsparse_itilu0_option_verbose = 1, rocsparse_itilu0_option_stopping_criteria = 2,
    rocsparse_itilu0_option_compute_nrm_correction = 4,
    rocsparse_itilu0_option_compute_nrm_residual = 8,
    rocsparse_itilu0_option_convergence_history = 16, rocsparse_itilu0_option_coo_format = 32
} rocsparse_itilu0_option;
typedef enum rocsparse_gpsv_interleaved_alg_ {
    rocsparse_gpsv_interleaved_alg_default = 0, rocsparse_gpsv_interleaved_alg_qr = 1
} rocsparse_gpsv_interleaved_alg;
typedef enum rocsparse_spmv_alg_ {
    rocsparse_spmv_alg_default = 0, rocsparse_spmv_alg_coo = 1,
    rocsparse_spmv_alg_csr_adaptive = 2, rocsparse_spmv_alg_csr_rowsplit = 3,
    rocsparse_spmv_alg_csr_stream = 3, rocsparse_spmv_alg_ell = 4,
    rocsparse_spmv_alg_coo_atomic = 5, rocsparse_spmv_alg_bsr = 6, rocsparse_spmv_alg_csr_lrb = 7
} rocsparse_spmv_alg;
typedef enum rocsparse_spmm_alg_ {
    rocsparse_spmm_alg_default = 0, rocsparse_spmm_alg_csr, rocsparse_spmm_alg_coo_segmented,
    rocsparse_spmm_alg_coo_atomic, rocsparse_spmm_alg_csr_row_split,
    rocsparse_spmm_alg_csr_merge, rocsparse_spmm_alg_coo_segmented_atomic,
    rocsparse_spmm_alg_bell, rocsparse_spmm_alg_bsr, rocsparse_spmm_alg_csr_merge_path,
    rocsparse_spmm_alg_csr_nnz_split = rocsparse_spmm_alg_csr_merge
} rocsparse_spmm_alg;
typedef enum rocsparse_sddmm_alg_ {
    rocsparse_sddmm_alg_default = 0, rocsparse_sddmm_alg_dense = 1
} rocsparse_sddmm_alg;
#define WC_STAGES(name)                                                                       \
    typedef enum rocsparse_##name##_stage_ {                                                  \
        rocsparse_##name##_stage_buffer_size = 1, rocsparse_##name##_stage_preprocess = 2,    \
        rocsparse_##name##_stage_compute = 3                                                  \
    } rocsparse_##name##_stage;
#define WC_DEFAULT_ALG(name) \
    typedef enum rocsparse_##name##_alg_ { rocsparse_##name##_alg_default = 0 } rocsparse_##name##_alg;
WC_STAGES(spmv)
WC_STAGES(spmm)
WC_STAGES(spsv)
WC_STAGES(spsm)
WC_STAGES(spitsv)
WC_DEFAULT_ALG(spsv)
WC_DEFAULT_ALG(spsm)
WC_DEFAULT_ALG(spitsv)
WC_DEFAULT_ALG(sparse_to_dense)
WC_DEFAULT_ALG(dense_to_sparse)
#undef WC_STAGES
#undef WC_DEFAULT_ALG
typedef enum rocsparse_spgemm_alg_ { rocsparse_spgemm_alg_default = 0 } rocsparse_spgemm_alg;
typedef enum rocsparse_spgemm_stage_ {
    rocsparse_spgemm_stage_buffer_size = 1, rocsparse_spgemm_stage_nnz = 2,
    rocsparse_spgemm_stage_compute = 3, rocsparse_spgemm_stage_symbolic = 4,
    rocsparse_spgemm_stage_numeric = 5
} rocsparse_spgemm_stage;

typedef struct __wc_sparse_context *rocsparse_handle;
typedef struct __wc_matrix_kind *rocsparse_mat_descr;
typedef struct __wc_sparse_state *rocsparse_mat_info;
typedef struct __wc_sparse *rocsparse_spmat_descr;
typedef const struct __wc_sparse *rocsparse_const_spmat_descr;
typedef struct __wc_dense *rocsparse_dnmat_descr, *rocsparse_dnvec_descr;
typedef const struct __wc_dense *rocsparse_const_dnmat_descr, *rocsparse_const_dnvec_descr;
typedef struct __wc_sparse_vector *rocsparse_spvec_descr;
typedef const struct __wc_sparse_vector *rocsparse_const_spvec_descr;

#define WC_FN WC_LIBRARY_FN rocsparse_status
#define WC_H rocsparse_handle handle
#define WC_NEEDS(condition, error) \
    if (!(condition)) return rocsparse_status_##error;
#define WC_DONE return rocsparse_status_success;
#define WC_NEW(to)                      \
    WC_NEEDS(to, invalid_pointer)       \
    *(void **)(to) = calloc(1, sizeof **(to)); \
    WC_NEEDS(*(to), memory_error)
#define WC_SPARSE(name, bytes, ...)                                                           \
    {                                                                                         \
        WC_NEEDS(handle, invalid_handle)                                                      \
        return __wc_rocsparse(__wavecast_library(handle->stream, "hipsparse." name, bytes,    \
                                                 __VA_ARGS__));                               \
    }
// Buffers are not needed; programs allocate what these functions say.
#define WC_BUFFER                                  \
    {                                              \
        WC_NEEDS(handle, invalid_handle)           \
        WC_NEEDS(buffer_size, invalid_pointer)     \
        *buffer_size = 4;                          \
        WC_DONE                                    \
    }
#define WC_DESTROYS(name, type)                                \
    WC_FN rocsparse_destroy_##name(type descriptor) {          \
        WC_NEEDS(descriptor, invalid_pointer)                  \
        free((void *)descriptor);                              \
        WC_DONE                                                \
    }
#define WC_FIELD(of, T, name, field, last)                              \
    WC_FN rocsparse_set_##of##_##name(rocsparse_##of##_descr descr, T value) {  \
        WC_NEEDS(descr, invalid_pointer)                                      \
        WC_NEEDS((unsigned)value <= (unsigned)last, invalid_value)            \
        descr->field = value;                                                 \
        WC_DONE                                                               \
    }                                                                         \
    WC_LIBRARY_FN T rocsparse_get_##of##_##name(const rocsparse_##of##_descr descr) { \
        return descr ? (T)descr->field : (T)0;                                \
    }

WC_FN __wc_rocsparse(int status) {
    return !status       ? rocsparse_status_success
           : status == 6 ? rocsparse_status_internal_error
                         : rocsparse_status_invalid_value;
}
WC_LIBRARY_FN int __wc_rocsparse_op(rocsparse_operation op) { return op - rocsparse_operation_none; }
WC_LIBRARY_FN int __wc_is_op(rocsparse_operation op) {
    return op >= rocsparse_operation_none && op <= rocsparse_operation_conjugate_transpose;
}
// The hipDataType of a rocsparse_datatype, -1: none.
WC_LIBRARY_FN int __wc_rocsparse_type(rocsparse_datatype type) {
    switch (type) {
    case rocsparse_datatype_f32_r: return HIP_R_32F;
    case rocsparse_datatype_f64_r: return HIP_R_64F;
    case rocsparse_datatype_f32_c: return HIP_C_32F;
    case rocsparse_datatype_f64_c: return HIP_C_64F;
    case rocsparse_datatype_i8_r: return HIP_R_8I;
    case rocsparse_datatype_u8_r: return HIP_R_8U;
    case rocsparse_datatype_i32_r: return HIP_R_32I;
    case rocsparse_datatype_u32_r: return HIP_R_32U;
    }
    return -1;
}
WC_LIBRARY_FN const char *rocsparse_get_status_name(rocsparse_status status) {
    static const char *const names[] = {
        "rocsparse_status_success", "rocsparse_status_invalid_handle",
        "rocsparse_status_not_implemented", "rocsparse_status_invalid_pointer",
        "rocsparse_status_invalid_size", "rocsparse_status_memory_error",
        "rocsparse_status_internal_error", "rocsparse_status_invalid_value",
        "rocsparse_status_arch_mismatch", "rocsparse_status_zero_pivot",
        "rocsparse_status_not_initialized", "rocsparse_status_type_mismatch",
        "rocsparse_status_requires_sorted_storage", "rocsparse_status_thrown_exception",
        "rocsparse_status_continue",
    };
    return (unsigned)status < 15 ? names[status] : "unknown status";
}

// --- handles and descriptors
WC_FN rocsparse_create_handle(rocsparse_handle *handle) {
    WC_NEW(handle)
    WC_DONE
}
WC_FN rocsparse_destroy_handle(rocsparse_handle handle) {
    WC_NEEDS(handle, invalid_handle)
    free(handle);
    WC_DONE
}
WC_FN rocsparse_set_stream(WC_H, hipStream_t stream) {
    WC_NEEDS(handle, invalid_handle)
    handle->stream = stream;
    WC_DONE
}
WC_FN rocsparse_get_stream(WC_H, hipStream_t *stream) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(stream, invalid_pointer)
    *stream = handle->stream;
    WC_DONE
}
WC_FN rocsparse_set_pointer_mode(WC_H, rocsparse_pointer_mode mode) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS((unsigned)mode <= 1, invalid_value)
    handle->pointer_mode = mode;
    WC_DONE
}
WC_FN rocsparse_get_pointer_mode(WC_H, rocsparse_pointer_mode *mode) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(mode, invalid_pointer)
    *mode = (rocsparse_pointer_mode)handle->pointer_mode;
    WC_DONE
}
WC_FN rocsparse_get_version(WC_H, int *version) {
    WC_NEEDS(handle, invalid_handle)
    WC_NEEDS(version, invalid_pointer)
    *version = ROCSPARSE_VERSION_MAJOR * 100000 + ROCSPARSE_VERSION_MINOR * 100;
    WC_DONE
}
WC_FN rocsparse_create_mat_descr(rocsparse_mat_descr *descr) {
    WC_NEW(descr)
    WC_DONE
}
WC_FN rocsparse_create_mat_info(rocsparse_mat_info *info) {
    WC_NEW(info)
    (*info)->pivot = -1;
    WC_DONE
}
WC_DESTROYS(mat_descr, rocsparse_mat_descr)
WC_DESTROYS(mat_info, rocsparse_mat_info)
WC_DESTROYS(spmat_descr, rocsparse_const_spmat_descr)
WC_DESTROYS(dnmat_descr, rocsparse_const_dnmat_descr)
WC_DESTROYS(dnvec_descr, rocsparse_const_dnvec_descr)
WC_DESTROYS(spvec_descr, rocsparse_const_spvec_descr)
WC_FIELD(mat, rocsparse_matrix_type, type, type, 3)
WC_FIELD(mat, rocsparse_index_base, index_base, base, 1)
WC_FIELD(mat, rocsparse_fill_mode, fill_mode, fill, 1)
WC_FIELD(mat, rocsparse_diag_type, diag_type, diagonal, 1)

WC_FN __wc_spmat(rocsparse_spmat_descr *to, int format, int64_t rows, int64_t columns,
                 int64_t entries, void *offsets, void *indices, void *values, int offset_type,
                 int index_type, int base, rocsparse_datatype type, int block, int by_column) {
    WC_NEEDS(to, invalid_pointer)
    WC_NEEDS(rows >= 0 && columns >= 0 && entries >= 0, invalid_size)
    WC_NEEDS(!entries || (indices && values), invalid_pointer)
    WC_NEEDS((unsigned)base <= 1 && __wc_rocsparse_type(type) >= 0, invalid_value)
    WC_NEEDS(offset_type >= 1 && offset_type <= 3 && index_type >= 1 && index_type <= 3,
             invalid_value)
    WC_NEW(to)
    struct __wc_sparse made = {rows, columns, entries, offsets, indices, values, format,
                               offset_type, index_type, base, __wc_rocsparse_type(type), 0, 0,
                               block, block, by_column};
    **to = made;
    WC_DONE
}
#define WC_COMPRESSED(name, FORMAT)                                                               \
    WC_FN rocsparse_create_##name##_descr(                                                        \
        rocsparse_spmat_descr *descr, int64_t rows, int64_t cols, int64_t nnz, void *offsets,     \
        void *indices, void *values, rocsparse_indextype offset_type,                             \
        rocsparse_indextype index_type, rocsparse_index_base base, rocsparse_datatype type) {     \
        return __wc_spmat(descr, FORMAT, rows, cols, nnz, offsets, indices, values, offset_type,  \
                          index_type, base, type, 0, 0);                                          \
    }                                                                                             \
    WC_FN rocsparse_##name##_set_pointers(rocsparse_spmat_descr descr, void *offsets,             \
                                          void *indices, void *values) {                          \
        WC_NEEDS(descr, invalid_pointer)                                                          \
        descr->offsets = offsets, descr->indices = indices, descr->values = values;               \
        WC_DONE                                                                                   \
    }
WC_COMPRESSED(csr, WC_SPARSE_CSR)
WC_COMPRESSED(csc, WC_SPARSE_CSC)
#undef WC_COMPRESSED
WC_FN rocsparse_create_coo_descr(rocsparse_spmat_descr *descr, int64_t rows, int64_t cols,
                                 int64_t nnz, void *row_indices, void *indices, void *values,
                                 rocsparse_indextype index_type, rocsparse_index_base base,
                                 rocsparse_datatype type) {
    return __wc_spmat(descr, WC_SPARSE_COO, rows, cols, nnz, row_indices, indices, values,
                      index_type, index_type, base, type, 0, 0);
}
WC_FN rocsparse_create_bsr_descr(rocsparse_spmat_descr *descr, int64_t mb, int64_t nb,
                                 int64_t nnzb, rocsparse_direction dir, int64_t block_dim,
                                 void *offsets, void *indices, void *values,
                                 rocsparse_indextype offset_type, rocsparse_indextype index_type,
                                 rocsparse_index_base base, rocsparse_datatype type) {
    WC_NEEDS((unsigned)dir <= 1, invalid_value)
    WC_NEEDS(block_dim > 0, invalid_size)
    return __wc_spmat(descr, WC_SPARSE_BSR, mb * block_dim, nb * block_dim, nnzb, offsets, indices,
                      values, offset_type, index_type, base, type, (int)block_dim, dir);
}
WC_FN rocsparse_create_ell_descr(rocsparse_spmat_descr *descr, int64_t rows, int64_t cols,
                                 void *indices, void *values, int64_t width,
                                 rocsparse_indextype index_type, rocsparse_index_base base,
                                 rocsparse_datatype type) {
    WC_NEEDS(width >= 0, invalid_size)
    return __wc_spmat(descr, WC_SPARSE_ELL, rows, cols, rows * width, NULL, indices, values,
                      index_type, index_type, base, type, 0, 0);
}
WC_FN rocsparse_spmat_get_size(rocsparse_const_spmat_descr descr, int64_t *rows, int64_t *cols,
                               int64_t *nnz) {
    WC_NEEDS(descr && rows && cols && nnz, invalid_pointer)
    *rows = descr->rows, *cols = descr->columns, *nnz = descr->entries;
    WC_DONE
}
WC_FN rocsparse_spmat_get_nnz(rocsparse_const_spmat_descr descr, int64_t *nnz) {
    WC_NEEDS(descr && nnz, invalid_pointer)
    *nnz = descr->entries;
    WC_DONE
}
WC_FN rocsparse_spmat_set_values(rocsparse_spmat_descr descr, void *values) {
    WC_NEEDS(descr && values, invalid_pointer)
    descr->values = values;
    WC_DONE
}
WC_FN rocsparse_spmat_set_attribute(rocsparse_spmat_descr descr,
                                    rocsparse_spmat_attribute attribute, const void *data,
                                    size_t bytes) {
    WC_NEEDS(descr && data, invalid_pointer)
    WC_NEEDS((unsigned)attribute <= 3, invalid_value)
    WC_NEEDS(bytes == sizeof(int), invalid_size)
    if (attribute == rocsparse_spmat_fill_mode) descr->fill = *(const int *)data;
    if (attribute == rocsparse_spmat_diag_type) descr->diagonal = *(const int *)data;
    WC_DONE
}
WC_FN rocsparse_create_dnmat_descr(rocsparse_dnmat_descr *descr, int64_t rows, int64_t cols,
                                   int64_t ld, void *values, rocsparse_datatype type,
                                   rocsparse_order order) {
    WC_NEEDS(descr, invalid_pointer)
    WC_NEEDS(rows >= 0 && cols >= 0, invalid_size)
    WC_NEEDS((unsigned)order <= 1 && __wc_rocsparse_type(type) >= 0, invalid_value)
    WC_NEEDS(ld >= (order ? rows : cols), invalid_size)
    WC_NEEDS(!rows || !cols || values, invalid_pointer)
    WC_NEW(descr)
    struct __wc_dense made = {rows, cols, ld, values, __wc_rocsparse_type(type), order};
    **descr = made;
    WC_DONE
}
WC_FN rocsparse_create_dnvec_descr(rocsparse_dnvec_descr *descr, int64_t size, void *values,
                                   rocsparse_datatype type) {
    return rocsparse_create_dnmat_descr(descr, size, 1, size, values, type, rocsparse_order_column);
}
WC_FN rocsparse_dnmat_set_values(rocsparse_dnmat_descr descr, void *values) {
    WC_NEEDS(descr && values, invalid_pointer)
    descr->values = values;
    WC_DONE
}
WC_FN rocsparse_dnvec_set_values(rocsparse_dnvec_descr descr, void *values) {
    return rocsparse_dnmat_set_values(descr, values);
}
WC_FN rocsparse_create_spvec_descr(rocsparse_spvec_descr *descr, int64_t size, int64_t nnz,
                                   void *indices, void *values, rocsparse_indextype index_type,
                                   rocsparse_index_base base, rocsparse_datatype type) {
    WC_NEEDS(descr, invalid_pointer)
    WC_NEEDS(size >= 0 && nnz >= 0 && nnz <= size, invalid_size)
    WC_NEEDS((unsigned)base <= 1 && __wc_rocsparse_type(type) >= 0, invalid_value)
    WC_NEW(descr)
    struct __wc_sparse_vector made = {size, nnz, indices, values, index_type, base,
                                      __wc_rocsparse_type(type)};
    **descr = made;
    WC_DONE
}

#include <rocsparse/generic.h>
#include <rocsparse/matrices.h>
#include <rocsparse/preconditioners.h>

#undef WC_FN
#undef WC_H
#undef WC_NEEDS
#undef WC_DONE
#undef WC_NEW
#undef WC_SPARSE
#undef WC_BUFFER
#undef WC_DESTROYS
#undef WC_FIELD
