// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"sync"
)

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

// sleepableHooks are the hooks of LSM to which programs that may sleep can be attached, with the releases between which
// that began: the set sleepable_lsm_hooks in kernel/bpf/bpf_lsm.c, as Linux 5.10, 6.1, 6.12 and 7.2 answered to
// TestVerifierSleepableHooks.
var sleepableHooks = sync.OnceValue(func() map[string]permission {
	all := make(map[string]permission)
	for _, g := range []struct {
		since permission
		hooks string
	}{
		{permission{}, `bprm_committed_creds userns_create current_getsecid_subj task_getsecid_obj bpf_map_create bpf_map_free bpf_prog_load
			bpf_token_capable bpf_token_cmd bpf_token_create bpf_token_free file_post_open`},
		{permission{linux(5, 10), linux(6, 1)}, `bpf bpf_map bpf_map_alloc_security bpf_map_free_security bpf_prog bprm_check_security
			bprm_committing_creds bprm_creds_for_exec bprm_creds_from_file capget capset cred_prepare file_ioctl file_lock file_open
			file_receive inode_create inode_free_security inode_getattr inode_getxattr inode_mknod inode_need_killpriv
			inode_post_setxattr inode_readlink inode_rename inode_rmdir inode_setattr inode_setxattr inode_symlink inode_unlink
			kernel_module_request kernel_read_file kernfs_init_security key_free mmap_file netlink_send path_notify release_secctx
			sb_alloc_security sb_eat_lsm_opts sb_kern_mount sb_mount sb_remount sb_set_mnt_opts sb_show_options sb_statfs sb_umount
			settime socket_accept socket_bind socket_connect socket_create socket_getpeername socket_getpeersec_dgram
			socket_getsockname socket_getsockopt socket_listen socket_post_create socket_recvmsg socket_sendmsg socket_shutdown
			socket_socketpair syslog task_alloc task_prctl task_setscheduler`},
		{permission{linux(6, 1), linux(6, 12)}, "path_chmod path_chown path_link path_mkdir path_rename path_rmdir path_symlink path_truncate path_unlink"},
		{permission{linux(6, 12), linux(7, 2)}, "bdev_alloc_security bdev_setintegrity inode_post_removexattr inode_removexattr"},
	} {
		for hook := range strings.FieldsSeq(g.hooks) {
			all[hook] = g.since
		}
	}
	return all
})

// noLongerSleepable are hooks of that set in 6.1 and not in 6.12, and in 6.12 and not in 7.2.
var noLongerSleepable = map[string]bool{"inet_conn_established": true, "bpf_prog_free": true}

// sleepless judges a hook of LSM that the kernel has for programs that may sleep.
func (e *evaluation) sleepless(hook string) {
	f := Finding{Status: Fails, Code: AttachTargetHookSleeps}
	switch p, ok := sleepableHooks()[hook]; {
	case ok:
		f = e.k.permits(p, AttachTargetHookSleeps)
	case noLongerSleepable[hook]:
		f.Status, f.Doubt = MayFail, SomeKernels
	case e.k.has(linux(7, 3)) == present:
		f.Status, f.Until = MayFail, linux(7, 2)
	}
	if f.Status != OK {
		f.Subject = "hook " + hook
		e.add(f)
	}
}

// settingInjection is the setting of kernels with functions that are made for error injection. Those of system calls are
// where there are wrappers of them (arch/*/include/asm/syscall_wrapper.h).
const settingInjection = settingPrefix + "FUNCTION_ERROR_INJECTION"

// sleeplessFunction judges a function of the kernel for programs of fentry, fexit and fmod_ret that may sleep
// (bpf_check_attach_target in kernel/bpf/verifier.c). Linux 7.2 without the setting let them have a system call.
func (e *evaluation) sleeplessFunction(name string) {
	f := Finding{Status: MayFail, Code: AttachTargetSleeps, Subject: "function " + name}
	_, injection := e.k.known.config[settingInjection]
	switch {
	case injection && e.k.wrapper && strings.HasPrefix(name, "__") && strings.Contains(name, "_sys_"):
		return
	case !injection && e.k.known.config != nil:
		f.Code, f.Name = AttachTargetSleepsUnset, settingInjection
		if e.k.has(linux(6, 13)) != present {
			f.Status = Fails
		}
	}
	e.add(f)
}

// disabledHook judges a hook of LSM that the kernel has.
func (e *evaluation) disabledHook(name string) {
	since, ok := disabledHooks[name]
	if !ok {
		return
	}
	f := Finding{Status: Fails, Code: AttachTargetHook, Subject: "hook " + name}
	if e.k.has(since) != present {
		f.Status, f.From = MayFail, since
	}
	e.add(f)
}
