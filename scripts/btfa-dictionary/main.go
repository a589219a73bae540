// SPDX-License-Identifier: Apache-2.0

// Command btfa-dictionary makes the dictionary of the .btfa format from a corpus:
//
//	go run ./scripts/btfa-dictionary CORPUS
//
// It writes internal/btfa/dictionary and lib/c/btfa_dictionary.h. The bytes depend on the corpus alone. Another dictionary is another
// format: a file can only be read with the dictionary that it was written with.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// size is the number of bytes of names. 4,000 more save 0.4 % of an archive.
const size = 26_000

// keys are typical keys of kernels. The most frequent come last.
var keys = []string{
	"alpine/3.20/x86_64/6.6.30-0-lts", "arch/", "flatcar/", "photon/5.0/", "openeuler/22.03/", "bottlerocket/", "cos/",
	"amzn/2/x86_64/4.14.355-280.amzn2.x86_64", "amzn/2023/arm64/6.1.0-90.amzn2023.aarch64", "android/",
	"centos/7/x86_64/3.10.0-1160.el7.x86_64", "centos/8/arm64/4.18.0-348.el8.aarch64", "rocky/9.4/", "almalinux/",
	"ol/8/x86_64/5.4.17-2136.el8uek.x86_64", "ol/7/", "sles/15.5/x86_64/5.14.21-150500.55-default", "opensuse-leap/15.5/",
	"fedora/40/x86_64/6.8.5-301.fc40.x86_64", "rhel/9/x86_64/5.14.0-427.el9_4.x86_64", "rhel/8/x86_64/4.18.0-553.el8_10.x86_64",
	"debian/13/s390x/6.12.0+deb13-s390x", "debian/13/ppc64le/6.12.0+deb13-powerpc64le", "debian/13/armhf/6.12.0+deb13-armmp", "debian/10/",
	"debian/11/arm64/5.10.0-30-cloud-arm64", "ubuntu/18.04/x86_64/4.15.0-20-generic", "ubuntu/24.04/arm64/6.8.0-31-generic",
	"ubuntu/22.04/x86_64/5.15.0-1000-aws", "ubuntu/20.04/x86_64/5.4.0-42-generic", "debian/12/x86_64/6.1.0-40-amd64",
}

// integers are the names of C's integers in minimized BTF.
var integers = []string{"unsigned char", "signed char", "short", "unsigned short", "long long", "unsigned long long", "long", "unsigned long", "char", "unsigned int", "int"}

// central are the types that most tracers read: processes, files, sockets, block devices, and contexts of programs. Their names and
// members matter more than their number of uses in the kernel suggests.
var central = []string{
	"task_struct", "signal_struct", "sighand_struct", "cred", "user_namespace", "nsproxy", "pid", "upid", "pid_namespace", "ns_common", "mm_struct", "vm_area_struct",
	"thread_info", "kernel_siginfo", "linux_binprm", "css_set", "cgroup", "cgroup_subsys_state", "kernfs_node", "uts_namespace", "new_utsname", "rq", "cfs_rq",
	"file", "path", "dentry", "qstr", "inode", "super_block", "file_system_type", "vfsmount", "mount", "mnt_namespace", "fdtable", "files_struct", "fs_struct", "kiocb", "iov_iter",
	"sock", "sock_common", "inet_sock", "tcp_sock", "udp_sock", "inet_connection_sock", "unix_sock", "socket", "msghdr", "net", "net_device", "sk_buff", "request_sock",
	"sockaddr", "sockaddr_in", "sockaddr_in6", "sockaddr_un", "in6_addr", "iphdr", "ipv6hdr", "tcphdr", "udphdr", "xdp_buff", "xdp_rxq_info", "xdp_md", "nf_conn",
	"bio", "request", "request_queue", "gendisk", "block_device", "page", "folio", "kmem_cache", "irqaction", "module", "bpf_prog", "bpf_prog_aux", "bpf_map",
	"pt_regs", "user_pt_regs", "bpf_perf_event_data", "perf_event", "perf_sample_data", "kernel_clone_args",
	"trace_entry", "trace_event_raw_sys_enter", "trace_event_raw_sys_exit", "trace_event_raw_sched_switch", "trace_event_raw_sched_process_exec",
	"trace_event_raw_sched_process_exit", "trace_event_raw_sched_process_fork", "trace_event_raw_inet_sock_set_state", "trace_event_raw_kfree_skb",
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "btfa-dictionary:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, sources []string) error {
	if len(sources) == 0 {
		return errors.New("want a corpus")
	}
	c, err := corpus.Open(ctx, sources, corpus.Options{})
	if err != nil {
		return err
	}
	last := make(map[kernel.Key]*corpus.File) // of each series, so that each counts once
	for _, f := range c.Files {
		if old := last[f.Key.Series()]; old == nil || old.Key.Compare(f.Key) < 0 {
			last[f.Key.Series()] = f
		}
	}
	total := make(map[string]int)
	var s corpus.Scratch
	for _, f := range last {
		err := f.Read(ctx, &s, func(k *corpus.Kernel) error {
			b, err := btf.New(k.BTF, nil)
			if err != nil {
				return err
			}
			for name, w := range weights(b) {
				total[name] += w
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return write(dictionary(total))
}

// dictionary puts the most frequent texts at the end, where offsets are shortest.
func dictionary(total map[string]int) []byte {
	names := slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(a, b))
	})
	var texts []string
	room := size
	for _, name := range names {
		if room -= len(name) + 1; room < 0 {
			break
		}
		texts = append(texts, name)
	}
	slices.Reverse(texts)
	var b []byte
	for _, text := range slices.Concat(texts, integers, keys) {
		b = append(append(b, text...), 0)
	}
	return b
}

// weights returns a weight for each name of a type, member or enumerator: the logarithm of the number of members and parameters that
// have the type with that name or member.
func weights(b *btf.BTF) map[string]int {
	const (
		unit  = 4 // of the logarithm: the difference for twice as many
		first = 100
	)
	refs := make([]uint64, b.NumTypes())
	each := func(yield func(id btf.TypeID, t btf.Type)) {
		for id := btf.TypeID(1); int(id) < b.NumTypes(); id++ {
			yield(id, b.Type(id))
		}
	}
	each(func(_ btf.TypeID, t btf.Type) {
		switch t.Kind() {
		case btf.KindStruct, btf.KindUnion:
			for i := range t.Vlen() {
				refs[target(b, t.Member(i).Type, true)]++
			}
		case btf.KindFuncProto:
			for i := range t.Vlen() {
				refs[target(b, t.Param(i).Type, true)]++
			}
		case btf.KindTypedef:
			refs[target(b, t.Ref(), true)]++
		}
	})
	weight := make([]int, len(refs))
	for id, n := range refs {
		n = min(n+1, 1<<15)
		weight[id] = bits.Len64(n * n * n * n)
	}
	// The parts of a type are as likely as the type.
	for range 4 {
		each(func(id btf.TypeID, t btf.Type) {
			if !t.Kind().IsComposite() {
				return
			}
			w := weight[id]
			for i := range t.Vlen() {
				id, less := target(b, t.Member(i).Type, false), unit
				if t := b.Type(id); len(t.Name()) == 0 {
					less = 0
				}
				weight[id] = max(weight[id], w-less)
			}
		})
	}
	// Central types come before all others, with the anonymous types in them.
	for round := range 4 {
		each(func(id btf.TypeID, t btf.Type) {
			if !t.Kind().IsComposite() {
				return
			}
			if round == 0 && slices.Contains(central, string(t.Name())) {
				weight[id] += first
			}
			if weight[id] < first {
				return
			}
			for i := range t.Vlen() {
				part := target(b, t.Member(i).Type, false)
				if t := b.Type(part); len(t.Name()) == 0 && weight[part] < first {
					weight[part] = first
				}
			}
		})
	}
	names := make(map[string]int)
	each(func(id btf.TypeID, t btf.Type) {
		add := func(name []byte, w int) {
			if len(name) > 1 && names[string(name)] < w {
				names[string(name)] = w
			}
		}
		switch t.Kind() {
		case btf.KindStruct, btf.KindUnion:
			add(t.Name(), weight[id])
			for i := range t.Vlen() {
				add(b.Name(t.Member(i).NameOff), weight[id])
			}
		case btf.KindEnum, btf.KindEnum64:
			add(t.Name(), weight[id])
			for i := range t.Vlen() {
				add(b.Name(t.Enumerator(i).NameOff), weight[id]-3*unit)
			}
		}
	})
	return names
}

// target follows modifiers, typedefs, arrays and, optionally, pointers.
func target(b *btf.BTF, id btf.TypeID, pointers bool) btf.TypeID {
	for range 32 {
		t, _ := b.SkipMods(id)
		switch t.Kind() {
		case btf.KindArray:
			id = t.Array().Elem
		case btf.KindPtr:
			if !pointers {
				return 0
			}
			id = t.Ref()
		default:
			return t.ID
		}
		if id == 0 {
			break
		}
	}
	return 0
}

func write(dict []byte) error {
	if err := os.WriteFile("internal/btfa/dictionary", dict, 0o644); err != nil {
		return err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	var c bytes.Buffer
	c.WriteString("/* SPDX-License-Identifier: Apache-2.0 */\n" +
		"/* The dictionary of the .btfa format, as a zstd frame. Made by scripts/btfa-dictionary; do not edit. */\n")
	fmt.Fprintf(&c, "enum { DICTIONARY_SIZE = %d }; /* bytes, decompressed */\n\nstatic const uint8_t dictionary_frame[] = {\n", len(dict))
	for line := range slices.Chunk(w.EncodeAll(dict, nil), 24) {
		fmt.Fprintf(&c, "\t%s,\n", strings.ReplaceAll(strings.Trim(fmt.Sprint(line), "[]"), " ", ", "))
	}
	c.WriteString("};\n")
	return os.WriteFile("lib/c/btfa_dictionary.h", c.Bytes(), 0o644)
}
