// The calls of the layer below HIP that programs ask for the target of their GPUs (Mojo's runtime
// does). Handles of agents and of instruction sets are numbers of devices plus 1. Source: the HSA
// Runtime Programmer's Reference Manual 1.2, sections 2.3 and 2.8; those of AMD are of
// `hsa_amd_agent_info_t` in ROCR's `hsa_ext_amd.h`.
#include "runtime.h"

enum { HSA_SUCCESS = 0, HSA_INVALID_ARGUMENT = 0x1001, HSA_INVALID_HANDLE = 0x1004 };
enum { AGENT_NAME = 0, AGENT_VENDOR = 1, AGENT_WAVE = 6, AGENT_NODE = 16, AGENT_DEVICE = 17,
       AGENT_ISA = 19, AMD_COMPUTE_UNITS = 0xA002, AMD_PLACE = 0xA006, AMD_DOMAIN = 0xA00F };
enum { ISA_NAME_LENGTH = 0, ISA_NAME = 1, TYPE_GPU = 1, NAME_BYTES = 64 };

typedef struct {
    unsigned long long handle;
} Handle;
typedef int (*Visit)(Handle handle, void *data);

API int hsa_init(void) {
    enter();
    return leave(hipSuccess);
}
API int hsa_shut_down(void) { return HSA_SUCCESS; }

API int hsa_iterate_agents(Visit visit, void *data) {
    if (!visit) return HSA_INVALID_ARGUMENT;
    enter();
    leave(hipSuccess);
    int status = HSA_SUCCESS;
    for (unsigned device = 0; !status && device < session.devices; ++device)
        status = visit((Handle){device + 1}, data);
    return status;
}

static bool is_handle(Handle handle) { return handle.handle && handle.handle <= session.devices; }

API int hsa_agent_get_info(Handle agent, unsigned attribute, void *value) {
    if (!is_handle(agent)) return HSA_INVALID_HANDLE;
    if (!value) return HSA_INVALID_ARGUMENT;
    const char *text = attribute == AGENT_NAME ? session.properties.gcnArchName : "AMD";
    switch (attribute) {
    case AGENT_NAME:
    case AGENT_VENDOR:
        memset(value, 0, NAME_BYTES);
        memcpy(value, text, strnlen(text, NAME_BYTES - 1));
        return HSA_SUCCESS;
    case AGENT_WAVE:
        *(unsigned *)value = session.properties.warpSize;
        return HSA_SUCCESS;
    case AGENT_NODE:
        *(unsigned *)value = agent.handle;
        return HSA_SUCCESS;
    case AGENT_DEVICE:
        *(unsigned *)value = TYPE_GPU;
        return HSA_SUCCESS;
    case AMD_COMPUTE_UNITS:
        *(unsigned *)value = session.properties.multiProcessorCount;
        return HSA_SUCCESS;
    case AMD_PLACE:  // bus, device and function on it, as HIP's attributes say
        *(unsigned *)value = (unsigned)agent.handle << 8;
        return HSA_SUCCESS;
    case AMD_DOMAIN:
        *(unsigned *)value = 0;
        return HSA_SUCCESS;
    case AGENT_ISA:
        *(Handle *)value = agent;
        return HSA_SUCCESS;
    }
    return HSA_INVALID_ARGUMENT;
}

API int hsa_agent_iterate_isas(Handle agent, Visit visit, void *data) {
    if (!is_handle(agent)) return HSA_INVALID_HANDLE;
    return visit ? visit(agent, data) : HSA_INVALID_ARGUMENT;
}

API int hsa_isa_get_info_alt(Handle isa, unsigned attribute, void *value) {
    if (!is_handle(isa)) return HSA_INVALID_HANDLE;
    if (!value) return HSA_INVALID_ARGUMENT;
    char name[sizeof session.properties.gcnArchName + NAME_BYTES];
    int bytes = snprintf(name, sizeof name, "amdgcn-amd-amdhsa--%s",
                         session.properties.gcnArchName) + 1;
    if (attribute == ISA_NAME_LENGTH)
        *(unsigned *)value = bytes;
    else if (attribute == ISA_NAME)
        memcpy(value, name, bytes);
    else
        return HSA_INVALID_ARGUMENT;
    return HSA_SUCCESS;
}
