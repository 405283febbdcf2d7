/*
 * The classes of CUDA's errors, of driver_types.h in CUDA 13.0.
 *
 * After a code that is not listed the device counts as lost, and a new process tries again.  Codes
 * of which CUDA says "the process must be terminated and relaunched" behave the same, but are
 * listed to show that none was forgotten.
 */

#include "fault.h"

#include <stddef.h>

static const struct {
    int          code;
    vlm_fault_t  is;
} faults[] = {
    {   0, VLM_FAULT_NONE },

    {   1, VLM_FAULT_REFUSED },        /* InvalidValue */
    {   2, VLM_FAULT_REFUSED },        /* MemoryAllocation */
    {   9, VLM_FAULT_REFUSED },        /* InvalidConfiguration */
    {  36, VLM_FAULT_REFUSED },        /* CallRequiresNewerDriver */
    {  98, VLM_FAULT_REFUSED },        /* InvalidDeviceFunction */
    { 701, VLM_FAULT_REFUSED },        /* LaunchOutOfResources */
    { 720, VLM_FAULT_REFUSED },        /* CooperativeLaunchTooLarge */
    { 801, VLM_FAULT_REFUSED },        /* NotSupported */
    { 900, VLM_FAULT_REFUSED },        /* StreamCaptureUnsupported */
    { 901, VLM_FAULT_REFUSED },        /* StreamCaptureInvalidated */
    { 902, VLM_FAULT_REFUSED },        /* StreamCaptureMerge */
    { 903, VLM_FAULT_REFUSED },        /* StreamCaptureUnmatched */
    { 904, VLM_FAULT_REFUSED },        /* StreamCaptureUnjoined */
    { 905, VLM_FAULT_REFUSED },        /* StreamCaptureIsolation */
    { 906, VLM_FAULT_REFUSED },        /* StreamCaptureImplicit */
    { 907, VLM_FAULT_REFUSED },        /* CapturedEvent */
    { 908, VLM_FAULT_REFUSED },        /* StreamCaptureWrongThread */

    {   3, VLM_FAULT_UNUSABLE },       /* InitializationError */
    {  34, VLM_FAULT_UNUSABLE },       /* StubLibrary */
    {  35, VLM_FAULT_UNUSABLE },       /* InsufficientDriver */
    {  46, VLM_FAULT_UNUSABLE },       /* DevicesUnavailable */
    { 100, VLM_FAULT_UNUSABLE },       /* NoDevice */
    { 101, VLM_FAULT_UNUSABLE },       /* InvalidDevice */
    { 209, VLM_FAULT_UNUSABLE },       /* NoKernelImageForDevice */
    { 218, VLM_FAULT_UNUSABLE },       /* InvalidPtx */
    { 221, VLM_FAULT_UNUSABLE },       /* JitCompilerNotFound */
    { 222, VLM_FAULT_UNUSABLE },       /* UnsupportedPtxVersion */
    { 223, VLM_FAULT_UNUSABLE },       /* JitCompilationDisabled */
    { 802, VLM_FAULT_UNUSABLE },       /* SystemNotReady */
    { 803, VLM_FAULT_UNUSABLE },       /* SystemDriverMismatch */
    { 804, VLM_FAULT_UNUSABLE },       /* CompatNotSupportedOnDevice */

    { 214, VLM_FAULT_LOST },           /* ECCUncorrectable */
    { 220, VLM_FAULT_LOST },           /* NvlinkUncorrectable */
    { 226, VLM_FAULT_LOST },           /* Contained */
    { 700, VLM_FAULT_LOST },           /* IllegalAddress */
    { 702, VLM_FAULT_LOST },           /* LaunchTimeout */
    { 710, VLM_FAULT_LOST },           /* Assert */
    { 714, VLM_FAULT_LOST },           /* HardwareStackError */
    { 715, VLM_FAULT_LOST },           /* IllegalInstruction */
    { 716, VLM_FAULT_LOST },           /* MisalignedAddress */
    { 717, VLM_FAULT_LOST },           /* InvalidAddressSpace */
    { 718, VLM_FAULT_LOST },           /* InvalidPc */
    { 719, VLM_FAULT_LOST },           /* LaunchFailure */
    { 721, VLM_FAULT_LOST },           /* TensorMemoryLeak */
    { 810, VLM_FAULT_LOST },           /* MpsClientTerminated */
    { 911, VLM_FAULT_LOST },           /* ExternalDevice */
    { 999, VLM_FAULT_LOST }            /* Unknown */
};


vlm_fault_t
vlm_fault_of(int code)
{
    size_t  i;

    for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (faults[i].code == code) {
            return faults[i].is;
        }
    }

    return VLM_FAULT_LOST;
}
