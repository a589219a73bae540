// SPDX-License-Identifier: Apache-2.0

package check

import "fmt"

// release is a version of Linux, as LINUX_KERNEL_VERSION without the patch level.
type release uint32

func linux(major, minor uint64) release { return release(major<<16 | minor<<8) }

func (r release) String() string { return fmt.Sprintf("%d.%d", r>>16, r>>8&255) }

// witnesses are enumerators that came with a release and that nobody takes
// into an older kernel without most of that release's BPF: a kernel that has one
// which is newer than its name has newer BPF than its name, as those of some
// distributions do. Ascending. Source: include/uapi/linux/bpf.h of these releases.
var witnesses = []struct {
	came release
	enum int
	name string
}{
	{linux(5, 2), enumHelper, "BPF_FUNC_sk_storage_get"},
	{linux(5, 5), enumHelper, "BPF_FUNC_probe_read_kernel"},
	{linux(5, 8), enumHelper, "BPF_FUNC_ringbuf_output"},
	{linux(5, 11), enumHelper, "BPF_FUNC_get_current_task_btf"},
	{linux(5, 13), enumHelper, "BPF_FUNC_for_each_map_elem"},
	{linux(5, 15), enumHelper, "BPF_FUNC_get_attach_cookie"},
	{linux(5, 16), enumHelper, "BPF_FUNC_kallsyms_lookup_name"},
	{linux(5, 17), enumHelper, "BPF_FUNC_loop"},
	{linux(5, 18), enumAttach, "BPF_TRACE_KPROBE_MULTI"},
	{linux(6, 1), enumHelper, "BPF_FUNC_user_ringbuf_drain"},
	{linux(6, 4), enumAttach, "BPF_NETFILTER"},
	{linux(6, 6), enumAttach, "BPF_TRACE_UPROBE_MULTI"},
	{linux(6, 7), enumAttach, "BPF_NETKIT_PRIMARY"},
	{linux(6, 9), enumMap, "BPF_MAP_TYPE_ARENA"},
	{linux(6, 10), enumAttach, "BPF_TRACE_KPROBE_SESSION"},
	{linux(6, 13), enumAttach, "BPF_TRACE_UPROBE_SESSION"},
	{linux(6, 15), enumField, "BPF_RES_SPIN_LOCK"},
}

// has says whether a kernel has what came with a release and shows nowhere in its BTF.
func (k *inventory) has(came release) presence {
	newest := release(0)
	for _, w := range witnesses {
		if _, ok := k.enums[w.enum][w.name]; ok {
			newest = w.came
		}
	}
	switch {
	case !k.dated() && newest >= came:
		return present
	case !k.dated():
		return untold
	case !k.before(came):
		return present
	case k.before(newest):
		return older
	}
	return lacking
}

// since judges by code what kernels refuse before a release.
func (k *inventory) since(came release, code Code) Finding {
	f := Finding{Status: MayFail, Code: code, Args: Args{Since: came}}
	switch k.has(came) {
	case present:
		return Finding{}
	case lacking:
		f.Status = Fails
	case older:
		f.Doubt = NewerBTF
	default:
		f.Doubt = NoRelease
	}
	return f
}
