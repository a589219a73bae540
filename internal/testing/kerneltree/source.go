// SPDX-License-Identifier: Apache-2.0

// Package kerneltree reads from the sources of a Linux kernel what it can do with BPF: facts and names only.
package kerneltree

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// wanted are the files that are read.
var wanted = regexp.MustCompile(`^(Makefile(\.rhelver)?|include/uapi/linux/bpf\.h|include/linux/\w*(bpf|btf|filter|lsm_hook_defs|ftrace|fprobe|skmsg|error-injection|trace_events)\w*\.h|include/linux/tracepoint-defs\.h|include/net/(xdp|xdp_sock|bpf_sk_storage|sock_reuseport|tcp)\.h` +
	`|kernel/(bpf|trace|cgroup)/[\w-]+\.[ch]|kernel/sched/ext\.c|kernel/(fail_function|events/core|kallsyms)\.c|lib/error-inject\.c|mm/maccess\.c` +
	`|net/(core|xdp|ipv4|bpf|netfilter|xfrm|sched)/([\w-]*(bpf|filter|sock_map|xsk|xdp|reuseport|conntrack|nat|fou|tcp_cong|skmsg|udp|tcp_ipv4|lwt|flow_dissector|sock_reuseport)[\w-]*)\.[ch]` +
	`|fs/verity/measure\.c|(fs|drivers/(media/rc|hid/bpf)|net/(socket|smc)|io_uring|crypto|fs/verity)/[\w/-]*(bpf|lirc|socket)[\w-]*\.c|arch/\w+/net/[\w-]+\.[chS]|arch/\w+/Kconfig|arch/\w+/include/asm/ftrace\.h)$`)

// files returns the text of the wanted files of a tree: a folder, or the newest commit of a bare Git directory.
func files(path string) (map[string]string, error) {
	texts := make(map[string]string)
	if _, err := os.Stat(filepath.Join(path, "Makefile")); err == nil {
		err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(path, name)
			rel = filepath.ToSlash(rel)
			if err != nil || !d.Type().IsRegular() || !wanted.MatchString(rel) {
				return err
			}
			b, err := os.ReadFile(name)
			texts[rel] = string(b)
			return err
		})
		return texts, err
	}
	args := []string{"--git-dir=" + path, "archive", "HEAD", "Makefile", "kernel", "include", "net", "arch", "lib", "fs", "mm", "drivers/media", "drivers/hid", "crypto"}
	if exec.Command("git", "--git-dir="+path, "cat-file", "-e", "HEAD:io_uring").Run() == nil { // since Linux 6.0
		args = append(args, "io_uring")
	}
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg && wanted.MatchString(h.Name) {
			b, err := io.ReadAll(r)
			if err != nil {
				return nil, err
			}
			texts[h.Name] = string(b)
		}
	}
}

var makeVariable = regexp.MustCompile(`(?m)^(VERSION|PATCHLEVEL|SUBLEVEL|RHEL_RELEASE)\s*=\s*(\S*)`)

// release returns the release of a tree, "4.18.0-147.5.1.el8" for one of Red Hat.
func release(texts map[string]string) string {
	v := make(map[string]string)
	for _, m := range makeVariable.FindAllStringSubmatch(texts["Makefile"]+"\n"+texts["Makefile.rhelver"], -1) {
		if v[m[1]] == "" {
			v[m[1]] = m[2]
		}
	}
	r := strings.Join([]string{v["VERSION"], v["PATCHLEVEL"], v["SUBLEVEL"]}, ".")
	if v["RHEL_RELEASE"] != "" {
		r += "-" + v["RHEL_RELEASE"]
	}
	return r
}
