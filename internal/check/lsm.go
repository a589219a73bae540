// SPDX-License-Identifier: Apache-2.0

package check

// disabledHooks are the hooks of LSM that programs cannot be attached to: the set
// bpf_lsm_disabled_hooks in kernel/bpf/bpf_lsm.c, with the first release that has
// them in it. The set is no part of the BTF. It came into updates of older kernels,
// which do not tell so.
//
// Hooks that take part in the set only with CONFIG_KEYS, CONFIG_AUDIT and
// CONFIG_SECURITY_NETWORK_XFRM exist only with these.
var disabledHooks = map[string]release{
	// "bpf, lsm: Add disabled BPF LSM hook list"
	"vm_enough_memory":    linux(6, 12),
	"inode_need_killpriv": linux(6, 12),
	"inode_getsecurity":   linux(6, 12),
	"inode_listsecurity":  linux(6, 12),
	"inode_copy_up_xattr": linux(6, 12),
	"getselfattr":         linux(6, 12),
	"getprocattr":         linux(6, 12),
	"setprocattr":         linux(6, 12),
	"key_getsecurity":     linux(6, 12),
	"audit_rule_match":    linux(6, 12),
	"ismaclabel":          linux(6, 12),
	// "bpf: Disallow attaching to the file_alloc_security hook"
	"file_alloc_security": linux(7, 0),
	// "bpf: lsm: disable xfrm_decode_session hook attachment"
	"xfrm_decode_session": linux(7, 3), // and in updates of 7.2
}

// disabledHook judges a hook of LSM that the kernel has.
func (e *evaluation) disabledHook(name string) {
	since, ok := disabledHooks[name]
	if !ok {
		return
	}
	f := Finding{Status: Fails, Topic: TopicTarget, Subject: "hook " + name, Reason: "the kernel keeps programs from this hook"}
	if e.k.has(since) != present {
		f.Status = MayFail
		f.Reason = "kernels since Linux " + since.String() + " keep programs from this hook, and some older ones with updates"
	}
	e.add(f)
}
