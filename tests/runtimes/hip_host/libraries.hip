// Calls of libraries compared with loops of the host: prints what differs, nothing where all agree.
#include <hip/hip_runtime.h>
#include <hipblas/hipblas.h>
#include <hipblaslt/hipblaslt.h>
#include <hipfft/hipfft.h>
#include <hiprand/hiprand_kernel.h>
#include <rocrand/rocrand_kernel.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <vector>

static void expect(bool right, const char *what) {
    if (!right) printf("wrong: %s\n", what);
}
template <typename T> static T *device(const std::vector<T> &values) {
    T *to;
    hipMalloc(&to, values.size() * sizeof(T));
    hipMemcpy(to, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice);
    return to;
}
template <typename T> static std::vector<T> host(const T *from, size_t count) {
    std::vector<T> values(count);
    hipMemcpy(values.data(), from, count * sizeof(T), hipMemcpyDeviceToHost);
    return values;
}
static std::vector<double> numbers(size_t count, unsigned seed) {
    std::vector<double> made(count);
    for (auto &one : made) one = ((seed = seed * 1664525u + 1013904223u) >> 8) % 1000 / 500.0 - 1;
    return made;
}
static bool near(double x, double y) { return std::fabs(x - y) <= 1e-9 * (1 + std::fabs(y)); }

static void vectors(hipblasHandle_t handle) {
    auto x = numbers(100, 1), y = numbers(200, 2);
    double *dx = device(x), *dy = device(y), alpha = 2.5, dot = 0, norm = 0;
    expect(!hipblasDaxpy(handle, 100, &alpha, dx, 1, dy, -2), "axpy status");
    auto after = host(dy, 200);
    for (int at = 0; at < 100; ++at)
        expect(near(after[2 * (99 - at)], y[2 * (99 - at)] + alpha * x[at]), "axpy");
    hipblasDdot(handle, 100, dx, 1, dx, 1, &dot);
    hipblasDnrm2(handle, 100, dx, 1, &norm);
    double sum = 0;
    int largest = 0;
    for (int at = 0; at < 100; ++at) {
        sum += x[at] * x[at];
        if (std::fabs(x[at]) > std::fabs(x[largest])) largest = at;
    }
    expect(near(dot, sum) && near(norm, std::sqrt(sum)), "dot and norm");
    int found = 0;
    hipblasIdamax(handle, 100, dx, 1, &found);
    expect(found == largest + 1, "amax");
    double *on_device = device(std::vector<double>{0});
    hipblasSetPointerMode(handle, HIPBLAS_POINTER_MODE_DEVICE);
    hipblasDasum(handle, 100, dx, 1, on_device);
    hipblasSetPointerMode(handle, HIPBLAS_POINTER_MODE_HOST);
    double total = 0;
    for (double one : x) total += std::fabs(one);
    expect(near(host(on_device, 1)[0], total), "result on the device");
    std::vector<hipblasComplex> c = {{1, 2}, {3, -1}}, d = {{0, 1}, {2, 2}};
    hipblasComplex product;
    hipblasCdotc(handle, 2, device(c), 1, device(d), 1, &product);
    expect(product.x == 6 && product.y == 9, "conjugated dot");
}

static void matrices(hipblasHandle_t handle) {
    const int m = 7, n = 5, k = 6, lda = 8, ldb = 9, ldc = 10;
    auto a = numbers(lda * m, 3), b = numbers(ldb * k, 4), c = numbers(ldc * n, 5);
    double *da = device(a), *db = device(b), *dc = device(c), alpha = 1.5, beta = -0.5;
    hipblasDgemm(handle, HIPBLAS_OP_T, HIPBLAS_OP_T, m, n, k, &alpha, da, lda, db, ldb, &beta, dc,
                 ldc);
    auto after = host(dc, c.size());
    for (int row = 0; row < m; ++row)
        for (int column = 0; column < n; ++column) {
            double sum = 0;
            for (int one = 0; one < k; ++one) sum += a[one + row * lda] * b[column + one * ldb];
            expect(near(after[row + column * ldc], alpha * sum + beta * c[row + column * ldc]),
                   "gemm");
        }
    expect(after[m] == c[m], "rows below the matrix");
    // op(L) x = b for a batch of pointers
    std::vector<double *> as = {da, da}, bs = {device(b), device(b)};
    for (int at = 0; at < k; ++at) a[at + at * lda] += 3;
    hipMemcpy(da, a.data(), a.size() * 8, hipMemcpyHostToDevice);
    double one = 1, zero = 0;
    hipblasDtrsmBatched(handle, HIPBLAS_SIDE_LEFT, HIPBLAS_FILL_MODE_LOWER, HIPBLAS_OP_T,
                        HIPBLAS_DIAG_NON_UNIT, k, 3, &one, device(as), lda, device(bs), ldb, 2);
    auto x = host(bs[1], b.size());
    for (int row = 0; row < k; ++row) {
        double sum = 0;
        for (int at = row; at < k; ++at) sum += a[at + row * lda] * x[at + ldb];
        expect(near(sum, b[row + ldb]), "trsm");
    }
    std::vector<int> pivots(2 * k), info(2);
    int *dp = device(pivots), *di = device(info), status = 1;
    std::vector<double *> both = {device(a), device(a)}, right = {device(b), device(b)};
    hipblasDgetrfBatched(handle, k, device(both), lda, dp, di, 2);
    hipblasDgetrsBatched(handle, HIPBLAS_OP_N, k, 1, device(both), lda, dp, device(right), ldb,
                         &status, 2);
    x = host(right[1], b.size());
    for (int row = 0; row < k; ++row) {
        double sum = 0;
        for (int at = 0; at < k; ++at) sum += a[row + at * lda] * x[at];
        expect(near(sum, b[row]), "LU");
    }
    expect(!status && !host(di, 2)[1], "info of LU");
    hipblasDsyrk(handle, HIPBLAS_FILL_MODE_UPPER, HIPBLAS_OP_N, k, k, &one, da, lda, &zero, dc,
                 ldc);
    after = host(dc, c.size());
    double sum = 0;
    for (int at = 0; at < k; ++at) sum += a[1 + at * lda] * a[3 + at * lda];
    expect(near(after[1 + 3 * ldc], sum), "syrk");
}

static void batches(hipblasHandle_t handle) {
    const int n = 3, count = 4;
    auto a = numbers(n * n * count, 7), b = numbers(n * n * count, 8);
    double *da = device(a), *db = device(b), one = 1, zero = 0;
    double *strided = device(std::vector<double>(n * n * count));
    hipblasDgemmStridedBatched(handle, HIPBLAS_OP_N, HIPBLAS_OP_T, n, n, n, &one, da, n, n * n, db,
                               n, n * n, &zero, strided, n, n * n, count);
    // the same, with the matrices of b in the opposite order, and all of a the first
    std::vector<double *> as(count, da), bs, cs;
    double *dc = device(std::vector<double>(n * n * count));
    for (int at = 0; at < count; ++at) {
        bs.push_back(db + (count - 1 - at) * n * n);
        cs.push_back(dc + at * n * n);
    }
    hipblasDgemmBatched(handle, HIPBLAS_OP_N, HIPBLAS_OP_T, n, n, n, &one, device(as), n,
                        device(bs), n, &zero, device(cs), n, count);
    auto first = host(strided, a.size()), second = host(dc, a.size());
    for (int which = 0; which < count; ++which)
        for (int at = 0; at < n * n; ++at) {
            double expected[2] = {};
            for (int k = 0; k < n; ++k) {
                int left = at % n + k * n, right = at / n + k * n;
                expected[0] += a[which * n * n + left] * b[which * n * n + right];
                expected[1] += a[left] * b[(count - 1 - which) * n * n + right];
            }
            expect(near(first[which * n * n + at], expected[0]), "strided batch");
            expect(near(second[which * n * n + at], expected[1]), "batch of pointers");
        }
}

static void small_types(hipblasHandle_t handle) {
    std::vector<_Float16> a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
    std::vector<float> c(4);
    float one = 1, zero = 0, *dc = device(c);
    expect(!hipblasGemmEx(handle, HIPBLAS_OP_N, HIPBLAS_OP_N, 2, 2, 2, &one, device(a), HIP_R_16F,
                          2, device(b), HIP_R_16F, 2, &zero, dc, HIP_R_32F, 2,
                          HIPBLAS_COMPUTE_32F, HIPBLAS_GEMM_DEFAULT),
           "GemmEx");
    expect(host(dc, 4) == std::vector<float>{23, 34, 31, 46}, "product of halves");
    std::vector<int8_t> x = {-128, 127, 5, -6}, y = {1, 2, 3, 4};
    int i_one = 1, i_zero = 0, *di = device(std::vector<int>(4));
    hipblasGemmEx(handle, HIPBLAS_OP_N, HIPBLAS_OP_N, 2, 2, 2, &i_one, device(x), HIP_R_8I, 2,
                  device(y), HIP_R_8I, 2, &i_zero, di, HIP_R_32I, 2, HIPBLAS_COMPUTE_32I,
                  HIPBLAS_GEMM_DEFAULT);
    expect(host(di, 4) == std::vector<int>{-118, 115, -364, 357}, "product of bytes");
}

static void epilogues() {
    hipblasLtHandle_t handle;
    hipblasLtMatmulDesc_t matmul;
    hipblasLtMatrixLayout_t a, b, d;
    hipblasLtCreate(&handle);
    hipblasLtMatmulDescCreate(&matmul, HIPBLAS_COMPUTE_32F, HIP_R_32F);
    hipblasLtEpilogue_t epilogue = HIPBLASLT_EPILOGUE_RELU_BIAS;
    hipblasOperation_t transposed = HIPBLAS_OP_T;
    // 1, -2, 3, 0.5 and 2, 1, 1, -4 in E4M3 of OCP, and biases in bfloat16
    uint8_t *da = device(std::vector<uint8_t>{0x38, 0xc0, 0x44, 0x30});
    uint8_t *db = device(std::vector<uint8_t>{0x40, 0x38, 0x38, 0xc8});
    unsigned short *bias = device(std::vector<unsigned short>{0x3f80, 0xbf80});
    float *scale = device(std::vector<float>{2}), one = 1, zero = 0;
    hipblasLtMatmulDescSetAttribute(matmul, HIPBLASLT_MATMUL_DESC_TRANSA, &transposed, 4);
    hipblasLtMatmulDescSetAttribute(matmul, HIPBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4);
    hipblasLtMatmulDescSetAttribute(matmul, HIPBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, 8);
    hipblasLtMatmulDescSetAttribute(matmul, HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, 8);
    hipblasLtMatrixLayoutCreate(&a, HIP_R_8F_E4M3, 2, 2, 2);
    hipblasLtMatrixLayoutCreate(&b, HIP_R_8F_E4M3, 2, 2, 2);
    hipblasLtMatrixLayoutCreate(&d, HIP_R_16BF, 2, 2, 2);
    unsigned short *dd = device(std::vector<unsigned short>(4));
    expect(!hipblasLtMatmul(handle, matmul, &one, da, a, db, b, &zero, dd, d, dd, d, nullptr,
                            nullptr, 0, 0),
           "matmul");
    // a^T b = {0, 6.5; 9, 1}, twice, with biases 1 and -1: {1, 12; 19, 1}
    expect(host(dd, 4) == std::vector<unsigned short>{0x3f80, 0x4140, 0x4198, 0x3f80},
           "fp8 product with bias");
}

static void transforms() {
    const int n = 12, batch = 3;
    std::vector<hipfftDoubleComplex> x(n * batch);
    auto parts = numbers(2 * n * batch, 6);
    for (int at = 0; at < n * batch; ++at) x[at] = {parts[2 * at], parts[2 * at + 1]};
    auto *dx = device(x);
    hipfftHandle plan;
    hipfftPlan1d(&plan, n, HIPFFT_Z2Z, batch);
    hipfftExecZ2Z(plan, dx, dx, HIPFFT_FORWARD);
    auto y = host(dx, x.size());
    for (int bin = 0; bin < n; ++bin) {
        std::complex<double> sum = 0;
        for (int at = 0; at < n; ++at)
            sum += std::complex<double>(x[n + at].x, x[n + at].y) *
                   std::polar(1.0, -2 * M_PI * bin * at / n);
        expect(near(y[n + bin].x, sum.real()) && near(y[n + bin].y, sum.imag()), "transform");
    }
    hipfftExecZ2Z(plan, dx, dx, HIPFFT_BACKWARD);
    expect(near(host(dx, 1)[0].x, n * x[0].x), "transform back");
    hipfftDestroy(plan);
    std::vector<float> image(6 * 10);
    for (size_t at = 0; at < image.size(); ++at) image[at] = (int)(at % 7) - 3;
    float *di = device(image);
    auto *spectrum = device(std::vector<hipfftComplex>(6 * 6));
    hipfftPlan2d(&plan, 6, 10, HIPFFT_R2C);
    expect(!hipfftExecR2C(plan, di, spectrum), "R2C");
    expect(hipfftExecC2R(plan, spectrum, di) == HIPFFT_INVALID_TYPE, "plan of another type");
    hipfftPlan2d(&plan, 6, 10, HIPFFT_C2R);
    hipfftExecC2R(plan, spectrum, di);
    auto back = host(di, image.size());
    for (size_t at = 0; at < image.size(); ++at)
        expect(std::fabs(back[at] / 60 - image[at]) < 1e-5, "R2C and C2R");
}

template <typename State> __global__ void draw(float *uniform, float *normal, int count) {
    State state;
    hiprand_init(1234, threadIdx.x, 0, &state);
    for (int at = 0; at < count; ++at) {
        uniform[threadIdx.x * count + at] = hiprand_uniform(&state);
        normal[threadIdx.x * count + at] = hiprand_normal(&state);
    }
}
__global__ void skip(unsigned *bits) {
    hiprandStatePhilox4_32_10_t state, other;
    hiprand_init(42, 7, 0, &state);
    hiprand_init(42, 7, 5, &other);
    for (int at = 0; at < 8; ++at) bits[at] = hiprand(&state);
    for (int at = 0; at < 3; ++at) bits[8 + at] = hiprand(&other);
    rocrand_state_philox4x32_10 same;
    rocrand_init(42, 7, 0, &same);
    uint4 four = rocrand4(&same);
    bits[11] = four.x, bits[12] = four.y, bits[13] = four.z, bits[14] = four.w;
    bits[15] = rocrand(&same);
    for (int at = 0; at < 2; ++at) rocrand_init(42, 7, 5, at ? &same : &other);
    float2 pair = rocrand_uniform2(&same);
    bits[16] = pair.x == hiprand_uniform(&other) && pair.y == hiprand_uniform(&other);
}
static void moments(const std::vector<float> &values, double mean, double variance,
                    const char *what) {
    double sum = 0, squares = 0;
    for (float one : values) sum += one, squares += (one - mean) * (one - mean);
    size_t count = values.size();
    expect(std::fabs(sum / count - mean) < 0.03 && std::fabs(squares / count - variance) < 0.06,
           what);
}
template <typename State> static void drawn(const char *what) {
    const int count = 64, threads = 128;
    float *uniform = device(std::vector<float>(count * threads)), *normal = nullptr;
    hipMalloc(&normal, count * threads * sizeof(float));
    draw<State><<<1, threads>>>(uniform, normal, count);
    moments(host(uniform, count * threads), 0.5, 1 / 12.0, what);
    moments(host(normal, count * threads), 0, 1, what);
}
static void random_numbers() {
    drawn<hiprandStatePhilox4_32_10_t>("Philox");
    drawn<hiprandState>("xorwow");
    drawn<hiprandStateMRG32k3a_t>("MRG32k3a");
    unsigned *bits = device(std::vector<unsigned>(17));
    skip<<<1, 1>>>(bits);
    auto found = host(bits, 17);
    expect(!memcmp(&found[5], &found[8], 12), "offset of Philox");
    expect(!memcmp(&found[0], &found[11], 20) && found[16], "rocRAND's names");
    hiprandGenerator_t generator;
    hiprandCreateGenerator(&generator, HIPRAND_RNG_PSEUDO_PHILOX4_32_10);
    hiprandSetPseudoRandomGeneratorSeed(generator, 99);
    float *values = device(std::vector<float>(10001));
    hiprandGenerateUniform(generator, values, 10001);
    auto whole = host(values, 10001);
    moments(whole, 0.5, 1 / 12.0, "hiprandGenerateUniform");
    hiprandSetPseudoRandomGeneratorSeed(generator, 99);
    hiprandGenerateUniform(generator, values, 5);
    hiprandGenerateUniform(generator, values, 5);
    expect(!memcmp(host(values, 5).data(), &whole[5], 20), "numbers in parts");
    hiprandGenerateNormal(generator, values, 10000, 3, 2);
    moments(host(values, 10000), 3, 4, "hiprandGenerateNormal");
    hiprandCreateGeneratorHost(&generator, HIPRAND_RNG_PSEUDO_XORWOW);
    hiprandSetPseudoRandomGeneratorSeed(generator, 99);
    std::vector<float> local(10001);
    hiprandGenerateUniform(generator, local.data(), local.size());
    expect(local == whole, "numbers in memory of the host");
}

static void captured(hipblasHandle_t handle) {
    hipStream_t stream;
    hipStreamCreate(&stream);
    hipblasSetStream(handle, stream);
    float *x = device(std::vector<float>{1, 2, 3}), two = 2;
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal);
    hipblasSscal(handle, 3, &two, x, 1);
    hipStreamEndCapture(stream, &graph);
    two = 100;
    expect(host(x, 3)[2] == 3, "a captured call is not executed");
    hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0);
    hipGraphLaunch(executable, stream);
    hipGraphLaunch(executable, stream);
    expect(host(x, 3)[2] == 12, "a captured call");
}

int main(int count, char **arguments) {
    hipblasHandle_t handle;
    hipblasCreate(&handle);
    if (count > 1 && !strcmp(arguments[1], "beyond")) {
        float one = 1, *x = device(std::vector<float>(10));
        hipblasSscal(handle, 5000, &one, x, 1);
        puts("not reached");
    }
    vectors(handle);
    matrices(handle);
    batches(handle);
    small_types(handle);
    epilogues();
    transforms();
    random_numbers();
    captured(handle);
    hipblasDestroy(handle);
}
