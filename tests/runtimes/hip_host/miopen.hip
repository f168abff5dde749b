// Calls of MIOpen compared with loops of the host: prints what differs.
#include <hip/hip_runtime.h>
#include <miopen/miopen.h>

#include <cmath>
#include <cstdio>
#include <vector>

using Values = std::vector<float>;
static void expect(bool right, const char *what) {
    if (!right) printf("wrong: %s\n", what);
}
static float *device(const Values &values) {
    float *to;
    hipMalloc(&to, values.size() * sizeof(float));
    hipMemcpy(to, values.data(), values.size() * sizeof(float), hipMemcpyHostToDevice);
    return to;
}
static bool holds(const float *from, const Values &right) {
    Values values(right.size());
    hipMemcpy(values.data(), from, right.size() * sizeof(float), hipMemcpyDeviceToHost);
    for (size_t i = 0; i < right.size(); i++)
        if (!(std::fabs(values[i] - right[i]) <= 1e-4f * (1 + std::fabs(right[i])))) return false;
    return true;
}
static unsigned seed = 1;
static Values random(size_t count) {
    Values values(count);
    for (float &value : values)
        value = ((seed = seed * 1664525 + 1013904223) >> 8) / float(1 << 23) - 1;
    return values;
}
static miopenTensorDescriptor_t shape(int n, int c, int h, int w) {
    miopenTensorDescriptor_t made;
    miopenCreateTensorDescriptor(&made);
    miopenSet4dTensorDescriptor(made, miopenFloat, n, c, h, w);
    return made;
}
static Values sum(float alpha, const Values &x, float beta, const Values &y) {
    Values total(x.size());
    for (size_t i = 0; i < x.size(); i++) total[i] = alpha * x[i] + beta * y[i];
    return total;
}

const int N = 2, C = 4, H = 7, W = 6, K = 6, R = 3, S = 2, GROUPS = 2;

static void convolutions(miopenHandle_t handle) {
    const int pad[] = {1, 2}, stride[] = {2, 1}, dilation[] = {1, 2};
    miopenConvolutionDescriptor_t of;
    miopenCreateConvolutionDescriptor(&of);
    miopenInitConvolutionDescriptor(of, miopenConvolution, pad[0], pad[1], stride[0], stride[1],
                                    dilation[0], dilation[1]);
    miopenSetConvolutionGroupCount(of, GROUPS);
    auto dx = shape(N, C, H, W), dw = shape(K, C / GROUPS, R, S);
    int n, k, p, q;
    miopenGetConvolutionForwardOutputDim(of, dx, dw, &n, &k, &p, &q);
    expect(n == N && k == K && p == 4 && q == 8, "sizes of a convolution");
    auto dy = shape(N, K, p, q);
    Values x = random(N * C * H * W), w = random(K * C / GROUPS * R * S), y(N * K * p * q);
    Values g = random(y.size()), gx(x.size()), gw(w.size()), old = random(y.size());
    for (int i = 0; i < N; i++)
        for (int o = 0; o < K; o++)
            for (int a = 0; a < p; a++)
                for (int b = 0; b < q; b++)
                    for (int c = 0; c < C / GROUPS; c++)
                        for (int r = 0; r < R; r++)
                            for (int s = 0; s < S; s++) {
                                int row = a * stride[0] - pad[0] + r * dilation[0];
                                int column = b * stride[1] - pad[1] + s * dilation[1];
                                if (row < 0 || row >= H || column < 0 || column >= W) continue;
                                int channel = o / (K / GROUPS) * (C / GROUPS) + c;
                                int from = ((i * C + channel) * H + row) * W + column;
                                int weight = ((o * (C / GROUPS) + c) * R + r) * S + s;
                                int to = ((i * K + o) * p + a) * q + b;
                                y[to] += x[from] * w[weight];
                                gx[from] += g[to] * w[weight];
                                gw[weight] += g[to] * x[from];
                            }
    float alpha = 2, beta = -1, one = 1, none = 0;
    float *px = device(x), *pw = device(w), *pg = device(g), *py = device(old);
    miopenConvAlgoPerf_t found;
    size_t bytes = 1;
    int count = 0;
    miopenConvolutionForwardGetWorkSpaceSize(handle, dw, dx, of, dy, &bytes);
    miopenFindConvolutionForwardAlgorithm(handle, dx, px, dw, pw, of, dy, py, 1, &count, &found, nullptr,
                                          bytes, false);
    expect(count == 1 && bytes == 0, "the algorithm of a convolution");
    miopenConvolutionForward(handle, &alpha, dx, px, dw, pw, of, found.fwd_algo, &beta, dy, py, nullptr, 0);
    expect(holds(py, sum(alpha, y, beta, old)), "a convolution");
    miopenConvolutionForwardImmediate(handle, dw, pw, dx, px, of, dy, py, nullptr, 0, 0);
    expect(holds(py, y), "a convolution at once");
    float *to = device(gx);
    miopenConvolutionBackwardData(handle, &one, dy, pg, dw, pw, of, found.bwd_data_algo, &none, dx, to,
                                  nullptr, 0);
    expect(holds(to, gx), "the gradient of the input");
    to = device(Values(gw.size()));
    miopenConvolutionBackwardWeights(handle, &one, dy, pg, dx, px, of, found.bwd_weights_algo, &none, dw,
                                     to, nullptr, 0);
    expect(holds(to, gw), "the gradient of the weights");
    // the transposed one: from y's size to x's
    miopenConvolutionDescriptor_t back;
    miopenCreateConvolutionDescriptor(&back);
    miopenInitConvolutionDescriptor(back, miopenTranspose, pad[0], pad[1], stride[0], stride[1],
                                    dilation[0], dilation[1]);
    miopenSetConvolutionGroupCount(back, GROUPS);
    int sizes[4];
    miopenGetConvolutionForwardOutputDim(back, dy, dw, sizes, sizes + 1, sizes + 2, sizes + 3);
    expect(sizes[0] == N && sizes[1] == C && sizes[2] == H && sizes[3] == W, "sizes of a transposed one");
    to = device(gx);
    miopenConvolutionForward(handle, &one, dy, pg, dw, pw, back, found.fwd_algo, &none, dx, to, nullptr, 0);
    expect(holds(to, gx), "a transposed convolution");
    Values bias = random(K), sums(K), shifted = y;
    for (size_t i = 0; i < y.size(); i++) {
        int o = i / (p * q) % K;
        shifted[i] += bias[o], sums[o] += g[i];
    }
    auto db = shape(1, K, 1, 1);
    float *pb = device(bias);
    miopenConvolutionForwardBias(handle, &one, db, pb, &none, dy, py);
    expect(holds(py, shifted), "a bias");
    miopenConvolutionBackwardBias(handle, &one, dy, pg, &none, db, pb);
    expect(holds(pb, sums), "the gradient of a bias");
    expect(miopenConvolutionForward(handle, &one, shape(N, 3, H, W), px, dw, pw, of, found.fwd_algo, &none,
                                    dy, py, nullptr, 0) == miopenStatusBadParm, "channels that do not fit");
    expect(miopenConvolutionForward(handle, nullptr, dx, px, dw, pw, of, found.fwd_algo, &none, dy, py,
                                    nullptr, 0) == miopenStatusBadParm, "no scalar");
    expect(miopenInitConvolutionDescriptor(of, miopenConvolution, -1, 0, 1, 1, 1, 1) ==
           miopenStatusBadParm, "a negative padding");
}

static void others(miopenHandle_t handle) {
    auto dx = shape(N, C, H, W);
    Values x = random(N * C * H * W);
    float one = 1, none = 0, *px = device(x);
    miopenPoolingDescriptor_t pooling;
    miopenCreatePoolingDescriptor(&pooling);
    for (miopenPoolingMode_t mode : {miopenPoolingMax, miopenPoolingAverage, miopenPoolingAverageInclusive}) {
        miopenSet2dPoolingDescriptor(pooling, mode, 3, 2, 1, 0, 2, 2);
        int n, c, p, q;
        miopenGetPoolingForwardOutputDim(pooling, dx, &n, &c, &p, &q);
        expect(p == 4 && q == 3, "sizes of pooling");
        Values y;
        for (int i = 0; i < N * C; i++)
            for (int a = 0; a < p; a++)
                for (int b = 0; b < q; b++) {
                    float most = -INFINITY, total = 0;
                    int seen = 0;
                    for (int r = 0; r < 3; r++)
                        for (int s = 0; s < 2; s++) {
                            int row = 2 * a - 1 + r, column = 2 * b + s;
                            if (row < 0 || row >= H || column >= W) continue;
                            float value = x[(i * H + row) * W + column];
                            most = std::fmax(most, value), total += value, seen++;
                        }
                    y.push_back(mode == miopenPoolingMax ? most
                                : total / (mode == miopenPoolingAverage ? seen : 6));
                }
        float *py = device(y);
        hipMemset(py, 0, y.size() * 4);
        miopenPoolingForward(handle, pooling, &one, dx, px, &none, shape(N, C, p, q), py, false, nullptr, 0);
        expect(holds(py, y), "pooling");
    }
    miopenActivationDescriptor_t activation;
    miopenCreateActivationDescriptor(&activation);
    struct { miopenActivationMode_t mode; float (*function)(float); } functions[] = {
        {miopenActivationPASTHRU, [](float v) { return v; }},
        {miopenActivationLOGISTIC, [](float v) { return 1 / (1 + expf(-v)); }},
        {miopenActivationTANH, [](float v) { return 3 * tanhf(0.5f * v); }},
        {miopenActivationRELU, [](float v) { return fmaxf(v, 0); }},
        {miopenActivationSOFTRELU, [](float v) { return logf(1 + expf(v)); }},
        {miopenActivationABS, [](float v) { return fabsf(v); }},
        {miopenActivationPOWER, [](float v) { return (0.5f + 3 * v) * (0.5f + 3 * v); }},
        {miopenActivationCLIPPEDRELU, [](float v) { return fminf(fmaxf(v, 0), 0.5f); }},
        {miopenActivationLEAKYRELU, [](float v) { return v > 0 ? v : 0.5f * v; }},
        {miopenActivationELU, [](float v) { return v > 0 ? v : 0.5f * (expf(v) - 1); }},
    };
    float *py = device(x);
    for (auto &each : functions) {
        Values y = x;
        for (float &value : y) value = each.function(value);
        miopenSetActivationDescriptor(activation, each.mode, 0.5, 3, 2);
        miopenActivationForward(handle, activation, &one, dx, px, &none, dx, py);
        expect(holds(py, y), "an activation");
    }
    const int plane = H * W;
    Values softmax(x.size()), logarithms(x.size()), whole(x.size()), normal(x.size());
    Values scale = random(C), bias = random(C), mean = random(C), variance(C, 0.5f);
    for (int i = 0; i < N; i++) {
        double all = 0;
        for (int j = 0; j < C * plane; j++) all += exp(x[i * C * plane + j]);
        for (int at = 0; at < plane; at++) {
            double total = 0;
            for (int c = 0; c < C; c++) total += exp(x[(i * C + c) * plane + at]);
            for (int c = 0; c < C; c++) {
                int j = (i * C + c) * plane + at;
                softmax[j] = exp(x[j]) / total, logarithms[j] = x[j] - log(total);
                whole[j] = exp(x[j]) / all;
                normal[j] = (x[j] - mean[c]) / sqrt(variance[c] + 0.25) * scale[c] + bias[c];
            }
        }
    }
    miopenSoftmaxForward(handle, &one, dx, px, &none, dx, py);
    expect(holds(py, softmax), "softmax over channels");
    miopenSoftmaxForward_V2(handle, &one, dx, px, &none, dx, py, MIOPEN_SOFTMAX_LOG,
                            MIOPEN_SOFTMAX_MODE_CHANNEL);
    expect(holds(py, logarithms), "logarithms of softmax");
    miopenSoftmaxForward_V2(handle, &one, dx, px, &none, dx, py, MIOPEN_SOFTMAX_FAST,
                            MIOPEN_SOFTMAX_MODE_INSTANCE);
    expect(holds(py, whole), "softmax over images");
    miopenBatchNormalizationForwardInference(handle, miopenBNSpatial, &one, &none, dx, px, dx, py,
                                             shape(1, C, 1, 1), device(scale), device(bias),
                                             device(mean), device(variance), 0.25);
    expect(holds(py, normal), "batch normalisation");
    Values other = random(x.size()), least(x.size());
    for (size_t i = 0; i < x.size(); i++) least[i] = fminf(2 * x[i], -other[i]) + 3 * normal[i];
    float two = 2, negative = -1, three = 3;
    miopenOpTensor(handle, miopenTensorOpMin, &two, dx, px, &negative, dx, device(other), &three, dx, py);
    expect(holds(py, least), "a smallest element");
    miopenTensorDescriptor_t turned;  // the same memory as NHWC
    miopenCreateTensorDescriptor(&turned);
    miopenSet4dTensorDescriptorEx(turned, miopenFloat, N, C, H, W, C * plane, 1, C * W, C);
    Values moved(x.size());
    for (int i = 0; i < N; i++)
        for (int c = 0; c < C; c++)
            for (int at = 0; at < plane; at++)
                moved[(i * plane + at) * C + c] = x[(i * C + c) * plane + at];
    miopenTransformTensor(handle, &one, dx, px, &none, turned, py);
    expect(holds(py, moved), "another order of dimensions");
    miopenSetTensor(handle, dx, py, &three);
    miopenScaleTensor(handle, dx, py, &two);
    expect(holds(py, Values(x.size(), 6.f)), "fills and scales");
    expect(miopenActivationForward(nullptr, activation, &one, dx, px, &none, dx, py) ==
           miopenStatusNotInitialized, "no handle");
}

int main() {
    miopenHandle_t handle;
    miopenCreate(&handle);
    convolutions(handle);
    others(handle);
    miopenDestroy(handle);
    return 0;
}
