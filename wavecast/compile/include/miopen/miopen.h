// MIOpen: convolution, pooling, activations, softmax, batch normalisation (inference) and elementwise
// operations. The functions are computed on the host (docs/hip.md, "Libraries").
#pragma once

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <wavecast/library_call.h>

#define MIOPEN_VERSION_MAJOR 3
#define MIOPEN_VERSION_MINOR 5
#define MIOPEN_VERSION_PATCH 0

typedef enum {
    miopenStatusSuccess = 0, miopenStatusNotInitialized = 1, miopenStatusInvalidValue = 2,
    miopenStatusBadParm = 3, miopenStatusAllocFailed = 4, miopenStatusInternalError = 5,
    miopenStatusNotImplemented = 6, miopenStatusUnknownError = 7, miopenStatusUnsupportedOp = 8,
    miopenStatusGpuOperationsSkipped = 9, miopenStatusVersionMismatch = 10
} miopenStatus_t;
typedef enum {
    miopenHalf = 0, miopenFloat = 1, miopenInt32 = 2, miopenInt8 = 3, miopenBFloat16 = 5,
    miopenDouble = 6, miopenInt64 = 9
} miopenDataType_t;
typedef enum {
    miopenConvolution = 0, miopenTranspose = 1, miopenGroupConv = 2, miopenDepthwise = 3
} miopenConvolutionMode_t;
typedef enum {
    miopenPaddingDefault = 0, miopenPaddingSame = 1, miopenPaddingValid = 2
} miopenPaddingMode_t;
typedef enum {
    miopenPoolingMax = 0, miopenPoolingAverage = 1, miopenPoolingAverageInclusive = 2
} miopenPoolingMode_t;
typedef enum {
    miopenActivationPASTHRU = 0, miopenActivationLOGISTIC = 1, miopenActivationTANH = 2,
    miopenActivationRELU = 3, miopenActivationSOFTRELU = 4, miopenActivationABS = 5,
    miopenActivationPOWER = 6, miopenActivationCLIPPEDRELU = 7, miopenActivationLEAKYRELU = 8,
    miopenActivationELU = 9
} miopenActivationMode_t;
typedef enum {
    MIOPEN_SOFTMAX_FAST = 0, MIOPEN_SOFTMAX_ACCURATE = 1, MIOPEN_SOFTMAX_LOG = 2
} miopenSoftmaxAlgorithm_t;
typedef enum {
    MIOPEN_SOFTMAX_MODE_INSTANCE = 0, MIOPEN_SOFTMAX_MODE_CHANNEL = 1
} miopenSoftmaxMode_t;
typedef enum {
    miopenBNPerActivation = 0, miopenBNSpatial = 1
} miopenBatchNormMode_t;
typedef enum {
    miopenTensorOpAdd = 0, miopenTensorOpMul = 1, miopenTensorOpMin = 2, miopenTensorOpMax = 3
} miopenTensorOp_t;
typedef enum {
    miopenConvolutionFwdAlgoGEMM = 0, miopenConvolutionFwdAlgoDirect = 1,
    miopenConvolutionFwdAlgoFFT = 2, miopenConvolutionFwdAlgoWinograd = 3,
    miopenConvolutionFwdAlgoImplicitGEMM = 5
} miopenConvFwdAlgorithm_t;
typedef enum {
    miopenConvolutionBwdDataAlgoGEMM = 0, miopenConvolutionBwdDataAlgoDirect = 1,
    miopenConvolutionBwdDataAlgoFFT = 2, miopenConvolutionBwdDataAlgoWinograd = 3,
    miopenConvolutionBwdDataAlgoImplicitGEMM = 5
} miopenConvBwdDataAlgorithm_t;
typedef enum {
    miopenConvolutionBwdWeightsAlgoGEMM = 0, miopenConvolutionBwdWeightsAlgoDirect = 1,
    miopenConvolutionBwdWeightsAlgoWinograd = 3, miopenConvolutionBwdWeightsAlgoImplicitGEMM = 5
} miopenConvBwdWeightsAlgorithm_t;
typedef enum { miopenConvolutionAlgoGEMM = 0, miopenConvolutionAlgoDirect = 1 } miopenConvAlgorithm_t;
typedef struct {
    union {
        miopenConvFwdAlgorithm_t fwd_algo;
        miopenConvBwdWeightsAlgorithm_t bwd_weights_algo;
        miopenConvBwdDataAlgorithm_t bwd_data_algo;
    };
    float time;
    size_t memory;
} miopenConvAlgoPerf_t;
typedef struct {
    float time;
    size_t workspace_size;
    uint64_t solution_id;
    miopenConvAlgorithm_t algorithm;
} miopenConvSolution_t;

// Up to five dimensions, as NCHW and NCDHW; strides count elements.
enum { WC_MOST_DIMENSIONS = 5 };
struct __wc_tensor {
    int type, count;
    long long sizes[WC_MOST_DIMENSIONS], strides[WC_MOST_DIMENSIONS];
};
struct __wc_window {  // of convolutions and pooling: 2 or 3 spatial dimensions
    int mode, spatial, groups;
    long long sizes[3], padding[3], stride[3], dilation[3];
};
struct __wc_activation {
    int mode;
    double alpha, beta, gamma;
};
struct __wc_dnn_context {
    hipStream_t stream;
};
typedef struct __wc_dnn_context *miopenHandle_t;
typedef hipStream_t miopenAcceleratorQueue_t;
typedef struct __wc_tensor *miopenTensorDescriptor_t;
typedef struct __wc_window *miopenConvolutionDescriptor_t, *miopenPoolingDescriptor_t;
typedef struct __wc_activation *miopenActivationDescriptor_t;

#define WC_FN WC_LIBRARY_FN miopenStatus_t
#define WC_NEEDS(condition) \
    if (!(condition)) return miopenStatusBadParm;
#define WC_DONE return miopenStatusSuccess;
#define WC_DESCRIPTOR(name, type)                                          \
    WC_FN miopenCreate##name##Descriptor(type *descriptor) {               \
        WC_NEEDS(descriptor)                                               \
        *descriptor = (type)calloc(1, sizeof **descriptor);                \
        return *descriptor ? miopenStatusSuccess : miopenStatusAllocFailed; \
    }                                                                      \
    WC_FN miopenDestroy##name##Descriptor(type descriptor) {               \
        WC_NEEDS(descriptor)                                               \
        free(descriptor);                                                  \
        WC_DONE                                                            \
    }
#define WC_H miopenHandle_t handle
#define WC_T const miopenTensorDescriptor_t
// How tensors and windows are passed, and the letters of that.
#define WC_TENSOR "iillllllllll"
#define WC_TENSOR_VALUES(t)                                                                   \
    t->type, t->count, t->sizes[0], t->sizes[1], t->sizes[2], t->sizes[3], t->sizes[4],       \
        t->strides[0], t->strides[1], t->strides[2], t->strides[3], t->strides[4]
#define WC_WINDOW "iiillllllllllll"
#define WC_WINDOW_VALUES(w)                                                                    \
    w->mode, w->spatial, w->groups, w->sizes[0], w->sizes[1], w->sizes[2], w->padding[0],      \
        w->padding[1], w->padding[2], w->stride[0], w->stride[1], w->stride[2], w->dilation[0], \
        w->dilation[1], w->dilation[2]
#define WC_DNN(name, type, ...)                                                                \
    {                                                                                          \
        if (!handle) return miopenStatusNotInitialized;                                        \
        int status = __wavecast_library(handle->stream, "miopen." name, __wc_scale_bytes(type), \
                                        __VA_ARGS__);                                          \
        return !status ? miopenStatusSuccess                                                   \
                       : status == 3 ? miopenStatusBadParm : miopenStatusInternalError;        \
    }

WC_LIBRARY_FN unsigned __wc_scale_bytes(int type) { return type == miopenDouble ? 8 : 4; }
WC_LIBRARY_FN const char *miopenGetErrorString(miopenStatus_t status) {
    static const char *const names[] = {
        "miopenStatusSuccess", "miopenStatusNotInitialized", "miopenStatusInvalidValue",
        "miopenStatusBadParm", "miopenStatusAllocFailed", "miopenStatusInternalError",
        "miopenStatusNotImplemented", "miopenStatusUnknownError", "miopenStatusUnsupportedOp",
        "miopenStatusGpuOperationsSkipped", "miopenStatusVersionMismatch",
    };
    return (unsigned)status < 11 ? names[status] : "Unknown error status";
}
WC_FN miopenGetVersion(size_t *major, size_t *minor, size_t *patch) {
    if (major) *major = MIOPEN_VERSION_MAJOR;
    if (minor) *minor = MIOPEN_VERSION_MINOR;
    if (patch) *patch = MIOPEN_VERSION_PATCH;
    WC_DONE
}

// --- handles
WC_FN miopenCreateWithStream(miopenHandle_t *handle, miopenAcceleratorQueue_t stream) {
    WC_NEEDS(handle)
    *handle = (miopenHandle_t)calloc(1, sizeof **handle);
    if (!*handle) return miopenStatusAllocFailed;
    (*handle)->stream = stream;
    WC_DONE
}
WC_FN miopenCreate(miopenHandle_t *handle) { return miopenCreateWithStream(handle, NULL); }
WC_FN miopenDestroy(WC_H) {
    WC_NEEDS(handle)
    free(handle);
    WC_DONE
}
WC_FN miopenSetStream(WC_H, miopenAcceleratorQueue_t stream) {
    WC_NEEDS(handle)
    handle->stream = stream;
    WC_DONE
}
WC_FN miopenGetStream(WC_H, miopenAcceleratorQueue_t *stream) {
    WC_NEEDS(handle && stream)
    *stream = handle->stream;
    WC_DONE
}

// --- tensors
WC_DESCRIPTOR(Tensor, miopenTensorDescriptor_t)
WC_FN miopenSetTensorDescriptor(miopenTensorDescriptor_t descriptor, miopenDataType_t type,
                                int count, const int *sizes, const int *strides) {
    WC_NEEDS(descriptor && sizes && count > 0 && count <= WC_MOST_DIMENSIONS)
    for (int axis = 0; axis < count; axis++) WC_NEEDS(sizes[axis] >= 0)
    descriptor->type = type, descriptor->count = count;
    long long step = 1;
    for (int axis = count - 1; axis >= 0; axis--) {
        descriptor->sizes[axis] = sizes[axis];
        descriptor->strides[axis] = strides ? strides[axis] : step;
        step *= sizes[axis];
    }
    WC_DONE
}
WC_FN miopenSet4dTensorDescriptorEx(miopenTensorDescriptor_t descriptor, miopenDataType_t type,
                                    int n, int c, int h, int w, int sn, int sc, int sh, int sw) {
    int sizes[] = {n, c, h, w}, strides[] = {sn, sc, sh, sw};
    return miopenSetTensorDescriptor(descriptor, type, 4, sizes, strides);
}
WC_FN miopenSet4dTensorDescriptor(miopenTensorDescriptor_t descriptor, miopenDataType_t type, int n,
                                  int c, int h, int w) {
    int sizes[] = {n, c, h, w};
    return miopenSetTensorDescriptor(descriptor, type, 4, sizes, NULL);
}
WC_FN miopenGetTensorDescriptorSize(miopenTensorDescriptor_t descriptor, int *count) {
    WC_NEEDS(descriptor && count)
    *count = descriptor->count;
    WC_DONE
}
WC_FN miopenGetTensorDescriptor(miopenTensorDescriptor_t descriptor, miopenDataType_t *type,
                                int *sizes, int *strides) {
    WC_NEEDS(descriptor)
    if (type) *type = (miopenDataType_t)descriptor->type;
    for (int axis = 0; axis < descriptor->count; axis++) {
        if (sizes) sizes[axis] = (int)descriptor->sizes[axis];
        if (strides) strides[axis] = (int)descriptor->strides[axis];
    }
    WC_DONE
}
WC_FN miopenGet4dTensorDescriptor(miopenTensorDescriptor_t descriptor, miopenDataType_t *type,
                                  int *n, int *c, int *h, int *w, int *sn, int *sc, int *sh,
                                  int *sw) {
    WC_NEEDS(descriptor && descriptor->count == 4)
    int *sizes[] = {n, c, h, w}, *strides[] = {sn, sc, sh, sw};
    if (type) *type = (miopenDataType_t)descriptor->type;
    for (int axis = 0; axis < 4; axis++) {
        if (sizes[axis]) *sizes[axis] = (int)descriptor->sizes[axis];
        if (strides[axis]) *strides[axis] = (int)descriptor->strides[axis];
    }
    WC_DONE
}
WC_FN miopenGetTensorNumBytes(miopenTensorDescriptor_t descriptor, size_t *bytes) {
    WC_NEEDS(descriptor && bytes)
    long long last = 0;
    *bytes = 0;
    for (int axis = 0; axis < descriptor->count; axis++) {
        if (!descriptor->sizes[axis]) WC_DONE
        last += (descriptor->sizes[axis] - 1) * descriptor->strides[axis];
    }
    int type = descriptor->type;
    int size = type == miopenDouble || type == miopenInt64         ? 8
               : type == miopenFloat || type == miopenInt32        ? 4
               : type == miopenHalf || type == miopenBFloat16      ? 2
                                                                   : 1;
    *bytes = (size_t)(last + 1) * size;
    WC_DONE
}
WC_FN miopenOpTensor(WC_H, miopenTensorOp_t op, const void *alpha1, WC_T a, const void *A,
                     const void *alpha2, WC_T b, const void *B, const void *beta, WC_T c, void *C) {
    WC_NEEDS(a && b && c && (unsigned)op <= miopenTensorOpMax)
    WC_DNN("combine", c->type, "iss" WC_TENSOR "p" WC_TENSOR "ps" WC_TENSOR "p", op, alpha1, alpha2,
           WC_TENSOR_VALUES(a), A, WC_TENSOR_VALUES(b), B, beta, WC_TENSOR_VALUES(c), C)
}
WC_FN miopenSetTensor(WC_H, WC_T y, void *Y, const void *alpha) {
    WC_NEEDS(y)
    WC_DNN("fill", y->type, "s" WC_TENSOR "p", alpha, WC_TENSOR_VALUES(y), Y)
}
WC_FN miopenScaleTensor(WC_H, WC_T y, void *Y, const void *alpha) {
    WC_NEEDS(y)
    WC_DNN("scale", y->type, "s" WC_TENSOR "p", alpha, WC_TENSOR_VALUES(y), Y)
}
// A function from one tensor to another: y = alpha f(x) + beta y.
#define WC_MAP(name, letters, ...)                                                               \
    WC_NEEDS(xDesc && yDesc)                                                                     \
    WC_DNN(name, yDesc->type, letters "s" WC_TENSOR "ps" WC_TENSOR "p", __VA_ARGS__, alpha,      \
           WC_TENSOR_VALUES(xDesc), x, beta, WC_TENSOR_VALUES(yDesc), y)
WC_FN miopenTransformTensor(WC_H, const void *alpha, WC_T xDesc, const void *x, const void *beta,
                            WC_T yDesc, void *y) {
    WC_MAP("activate", "iddd", miopenActivationPASTHRU, 0., 0., 0.)
}
WC_DESCRIPTOR(Activation, miopenActivationDescriptor_t)
WC_FN miopenSetActivationDescriptor(const miopenActivationDescriptor_t descriptor,
                                    miopenActivationMode_t mode, double alpha, double beta,
                                    double gamma) {
    WC_NEEDS(descriptor && (unsigned)mode <= miopenActivationELU)
    struct __wc_activation made = {mode, alpha, beta, gamma};
    *descriptor = made;
    WC_DONE
}
WC_FN miopenActivationForward(WC_H, const miopenActivationDescriptor_t of, const void *alpha,
                              WC_T xDesc, const void *x, const void *beta, WC_T yDesc, void *y) {
    WC_NEEDS(of)
    WC_MAP("activate", "iddd", of->mode, of->alpha, of->beta, of->gamma)
}
WC_FN miopenSoftmaxForward_V2(WC_H, const void *alpha, WC_T xDesc, const void *x, const void *beta,
                              WC_T yDesc, void *y, miopenSoftmaxAlgorithm_t algorithm,
                              miopenSoftmaxMode_t mode) {
    WC_NEEDS((unsigned)algorithm <= 2 && (unsigned)mode <= 1)
    WC_MAP("softmax", "ii", algorithm, mode)
}
WC_FN miopenSoftmaxForward(WC_H, const void *alpha, WC_T xDesc, const void *x, const void *beta,
                           WC_T yDesc, void *y) {
    return miopenSoftmaxForward_V2(handle, alpha, xDesc, x, beta, yDesc, y, MIOPEN_SOFTMAX_ACCURATE,
                                   MIOPEN_SOFTMAX_MODE_CHANNEL);
}
WC_FN miopenDeriveBNTensorDescriptor(miopenTensorDescriptor_t to, WC_T x,
                                     miopenBatchNormMode_t mode) {
    WC_NEEDS(to && x && x->count > 1 && (unsigned)mode <= 1)
    int sizes[WC_MOST_DIMENSIONS];
    for (int axis = 0; axis < x->count; axis++)
        sizes[axis] = axis == 1 || (axis > 1 && mode == miopenBNPerActivation) ? (int)x->sizes[axis]
                                                                              : 1;
    return miopenSetTensorDescriptor(to, (miopenDataType_t)x->type, x->count, sizes, NULL);
}
WC_FN miopenBatchNormalizationForwardInference(
    WC_H, miopenBatchNormMode_t mode, void *alpha, void *beta, WC_T xDesc, const void *x,
    WC_T yDesc, void *y, WC_T parameters, void *scale, void *bias, void *mean, void *variance,
    double epsilon) {
    WC_NEEDS(parameters && (unsigned)mode <= 1)
    WC_MAP("normalize", "id" WC_TENSOR "pppp", mode, epsilon, WC_TENSOR_VALUES(parameters), scale,
           bias, mean, variance)
}

// --- convolution
WC_DESCRIPTOR(Convolution, miopenConvolutionDescriptor_t)
WC_FN miopenInitConvolutionNdDescriptor(miopenConvolutionDescriptor_t descriptor, int spatial,
                                        const int *padding, const int *stride, const int *dilation,
                                        miopenConvolutionMode_t mode) {
    WC_NEEDS(descriptor && padding && stride && dilation && (spatial == 2 || spatial == 3))
    WC_NEEDS((unsigned)mode <= miopenDepthwise)
    struct __wc_window made = {(int)mode, spatial, 1, {0}, {0}, {0}, {0}};
    for (int axis = 0; axis < spatial; axis++) {
        WC_NEEDS(padding[axis] >= 0 && stride[axis] > 0 && dilation[axis] > 0)
        made.padding[axis] = padding[axis], made.stride[axis] = stride[axis];
        made.dilation[axis] = dilation[axis];
    }
    *descriptor = made;
    WC_DONE
}
WC_FN miopenInitConvolutionDescriptor(miopenConvolutionDescriptor_t descriptor,
                                      miopenConvolutionMode_t mode, int pad_h, int pad_w,
                                      int stride_h, int stride_w, int dilation_h, int dilation_w) {
    int padding[] = {pad_h, pad_w}, stride[] = {stride_h, stride_w};
    int dilation[] = {dilation_h, dilation_w};
    return miopenInitConvolutionNdDescriptor(descriptor, 2, padding, stride, dilation, mode);
}
WC_FN miopenSetConvolutionGroupCount(miopenConvolutionDescriptor_t descriptor, int groups) {
    WC_NEEDS(descriptor && groups > 0)
    descriptor->groups = groups;
    WC_DONE
}
WC_FN miopenGetConvolutionNdForwardOutputDim(miopenConvolutionDescriptor_t of, WC_T x, WC_T w,
                                             int *count, int *sizes) {
    WC_NEEDS(of && x && w && count && sizes && x->count == of->spatial + 2 && w->count == x->count)
    int back = of->mode == miopenTranspose;
    *count = x->count;
    sizes[0] = (int)x->sizes[0];
    sizes[1] = (int)(back ? w->sizes[1] * of->groups : w->sizes[0]);
    for (int axis = 0; axis < of->spatial; axis++) {
        long long reach = of->dilation[axis] * (w->sizes[2 + axis] - 1) + 1;
        long long size = x->sizes[2 + axis], padding = 2 * of->padding[axis];
        sizes[2 + axis] = (int)(back ? of->stride[axis] * (size - 1) + reach - padding
                                     : (size + padding - reach) / of->stride[axis] + 1);
    }
    WC_DONE
}
WC_FN miopenGetConvolutionForwardOutputDim(miopenConvolutionDescriptor_t of, WC_T x, WC_T w, int *n,
                                           int *c, int *h, int *width) {
    int count, sizes[WC_MOST_DIMENSIONS];
    WC_NEEDS(n && c && h && width)
    miopenStatus_t status = miopenGetConvolutionNdForwardOutputDim(of, x, w, &count, sizes);
    if (status) return status;
    WC_NEEDS(count == 4)
    *n = sizes[0], *c = sizes[1], *h = sizes[2], *width = sizes[3];
    WC_DONE
}
// Directions of a convolution: what is computed, of which tensors; ways are all the same one.
#define WC_DIRECTION(Name, Way, function, first, second, result)                                   \
    WC_FN miopenConvolution##Name##GetWorkSpaceSize(                                               \
        WC_H, WC_T, WC_T, const miopenConvolutionDescriptor_t, WC_T, size_t *bytes) {              \
        WC_NEEDS(handle && bytes)                                                                  \
        *bytes = 0;                                                                                \
        WC_DONE                                                                                    \
    }                                                                                              \
    WC_FN miopenFindConvolution##Name##Algorithm(                                                  \
        WC_H, WC_T, const void *, WC_T, const void *, const miopenConvolutionDescriptor_t, WC_T,   \
        void *, const int wanted, int *count, miopenConvAlgoPerf_t *found, void *, size_t, bool) { \
        WC_NEEDS(handle && count && found && wanted > 0)                                           \
        memset(found, 0, sizeof *found);                                                           \
        *count = 1;                                                                                \
        WC_DONE                                                                                    \
    }                                                                                              \
    WC_FN miopenConvolution##Name(WC_H, const void *alpha, WC_T first##Desc, const void *first,    \
                                  WC_T second##Desc, const void *second,                           \
                                  const miopenConvolutionDescriptor_t of, Way,                     \
                                  const void *beta, WC_T result##Desc, void *result, void *,       \
                                  size_t) {                                                        \
        WC_NEEDS(first##Desc && second##Desc && of && result##Desc)                                \
        WC_DNN(function, result##Desc->type,                                                       \
               "s" WC_TENSOR "p" WC_TENSOR "p" WC_WINDOW "s" WC_TENSOR "p", alpha,                 \
               WC_TENSOR_VALUES(first##Desc), first, WC_TENSOR_VALUES(second##Desc), second,       \
               WC_WINDOW_VALUES(of), beta, WC_TENSOR_VALUES(result##Desc), result)                 \
    }
WC_DIRECTION(Forward, miopenConvFwdAlgorithm_t, "convolve", x, w, y)
WC_DIRECTION(BackwardData, miopenConvBwdDataAlgorithm_t, "convolve_data", dy, w, dx)
WC_DIRECTION(BackwardWeights, miopenConvBwdWeightsAlgorithm_t,
             "convolve_weights", dy, x, dw)
WC_FN miopenConvolutionForwardBias(WC_H, const void *alpha, WC_T b, const void *B, const void *beta,
                                   WC_T y, void *Y) {
    WC_NEEDS(b && y && b->count == y->count)
    float one = 1, none = 0;
    double one_wide = 1, none_wide = 0;
    int wide = y->type == miopenDouble;
    (void)beta;
    WC_DNN("combine", y->type, "iss" WC_TENSOR "p" WC_TENSOR "ps" WC_TENSOR "p", miopenTensorOpAdd,
           wide ? (void *)&one_wide : (void *)&one, alpha, WC_TENSOR_VALUES(y), Y,
           WC_TENSOR_VALUES(b), B, wide ? (void *)&none_wide : (void *)&none, WC_TENSOR_VALUES(y), Y)
}
WC_FN miopenConvolutionBackwardBias(WC_H, const void *alpha, WC_T dyDesc, const void *dy,
                                    const void *beta, WC_T dbDesc, void *db) {
    WC_NEEDS(dyDesc && dbDesc)
    WC_DNN("sum", dbDesc->type, "s" WC_TENSOR "ps" WC_TENSOR "p", alpha, WC_TENSOR_VALUES(dyDesc), dy,
           beta, WC_TENSOR_VALUES(dbDesc), db)
}
WC_FN miopenConvolutionForwardGetSolutionCount(WC_H, WC_T, WC_T,
                                               const miopenConvolutionDescriptor_t, WC_T,
                                               size_t *count) {
    WC_NEEDS(handle && count)
    *count = 1;
    WC_DONE
}
WC_FN miopenConvolutionForwardGetSolution(WC_H, WC_T, WC_T, const miopenConvolutionDescriptor_t,
                                          WC_T, const size_t most, size_t *count,
                                          miopenConvSolution_t *solutions) {
    WC_NEEDS(handle && count && solutions && most)
    memset(solutions, 0, sizeof *solutions);
    *count = 1;
    WC_DONE
}
WC_FN miopenConvolutionForwardGetSolutionWorkspaceSize(WC_H, WC_T, WC_T,
                                                       const miopenConvolutionDescriptor_t, WC_T,
                                                       const uint64_t, size_t *bytes) {
    WC_NEEDS(handle && bytes)
    *bytes = 0;
    WC_DONE
}
WC_FN miopenConvolutionForwardCompileSolution(WC_H, WC_T, WC_T, const miopenConvolutionDescriptor_t,
                                              WC_T, const uint64_t) {
    WC_NEEDS(handle)
    WC_DONE
}
WC_FN miopenConvolutionForwardImmediate(WC_H, WC_T wDesc, const void *w, WC_T xDesc, const void *x,
                                        const miopenConvolutionDescriptor_t of, WC_T yDesc, void *y,
                                        void *, size_t, const uint64_t) {
    float one = 1, none = 0;
    double one_wide = 1, none_wide = 0;
    WC_NEEDS(yDesc)
    int wide = yDesc->type == miopenDouble;
    return miopenConvolutionForward(
        handle, wide ? (void *)&one_wide : (void *)&one, xDesc, x, wDesc, w, of,
        miopenConvolutionFwdAlgoGEMM, wide ? (void *)&none_wide : (void *)&none, yDesc, y, NULL, 0);
}

// --- pooling
WC_DESCRIPTOR(Pooling, miopenPoolingDescriptor_t)
WC_FN miopenSetNdPoolingDescriptor(miopenPoolingDescriptor_t descriptor,
                                   const miopenPoolingMode_t mode, int spatial, const int *sizes,
                                   const int *padding, const int *stride) {
    WC_NEEDS(descriptor && sizes && padding && stride && (spatial == 2 || spatial == 3))
    WC_NEEDS((unsigned)mode <= miopenPoolingAverageInclusive)
    struct __wc_window made = {(int)mode, spatial, 1, {0}, {0}, {0}, {1, 1, 1}};
    for (int axis = 0; axis < spatial; axis++) {
        WC_NEEDS(sizes[axis] > 0 && padding[axis] >= 0 && stride[axis] > 0)
        made.sizes[axis] = sizes[axis], made.padding[axis] = padding[axis];
        made.stride[axis] = stride[axis];
    }
    *descriptor = made;
    WC_DONE
}
WC_FN miopenSet2dPoolingDescriptor(miopenPoolingDescriptor_t descriptor, miopenPoolingMode_t mode,
                                   int height, int width, int pad_h, int pad_w, int stride_h,
                                   int stride_w) {
    int sizes[] = {height, width}, padding[] = {pad_h, pad_w}, stride[] = {stride_h, stride_w};
    return miopenSetNdPoolingDescriptor(descriptor, mode, 2, sizes, padding, stride);
}
WC_FN miopenGetPoolingNdForwardOutputDim(const miopenPoolingDescriptor_t of, WC_T x, int count,
                                         int *sizes) {
    WC_NEEDS(of && x && sizes && count == x->count && count == of->spatial + 2)
    sizes[0] = (int)x->sizes[0], sizes[1] = (int)x->sizes[1];
    for (int axis = 0; axis < of->spatial; axis++)
        sizes[2 + axis] = (int)((x->sizes[2 + axis] + 2 * of->padding[axis] - of->sizes[axis]) /
                                    of->stride[axis] + 1);
    WC_DONE
}
WC_FN miopenGetPoolingForwardOutputDim(const miopenPoolingDescriptor_t of, WC_T x, int *n, int *c,
                                       int *h, int *w) {
    int sizes[4];
    WC_NEEDS(n && c && h && w)
    miopenStatus_t status = miopenGetPoolingNdForwardOutputDim(of, x, 4, sizes);
    if (status) return status;
    *n = sizes[0], *c = sizes[1], *h = sizes[2], *w = sizes[3];
    WC_DONE
}
WC_FN miopenPoolingGetWorkSpaceSizeV2(const miopenPoolingDescriptor_t of, WC_T, size_t *bytes) {
    WC_NEEDS(of && bytes)
    *bytes = 0;
    WC_DONE
}
WC_FN miopenPoolingForward(WC_H, const miopenPoolingDescriptor_t of, const void *alpha, WC_T xDesc,
                           const void *x, const void *beta, WC_T yDesc, void *y, bool, void *,
                           size_t) {
    WC_NEEDS(of)
    WC_MAP("pool", WC_WINDOW, WC_WINDOW_VALUES(of))
}

#undef WC_FN
#undef WC_NEEDS
#undef WC_DONE
#undef WC_DESCRIPTOR
#undef WC_H
#undef WC_T
#undef WC_TENSOR
#undef WC_TENSOR_VALUES
#undef WC_WINDOW
#undef WC_WINDOW_VALUES
#undef WC_DNN
#undef WC_MAP
#undef WC_DIRECTION
