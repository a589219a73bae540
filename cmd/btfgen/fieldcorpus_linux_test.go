// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fieldCorpus has tests of TestField about the corpus.
var fieldCorpus = map[string]func(t *testing.T, c *cases){
	"btfc-names-bomb": func(t *testing.T, c *cases) {
		r := c.run(t, "btfc-names-bomb")
		const failed = `(?m)^btfgen: damaged: %s\.btfc: btfc: kernel debian/12/x86_64/0, at byte 5: unpacks to more than 100 times its size; affects %d kernels`
		x, fails := fmt.Sprintf(failed, "x", 201), fmt.Sprintf(failed, "parent-fails-50", 51)
		r.want(t, x, `\[btfgen generate: 1\]`, x, `\[btfgen corpus list: 1\]`, fails, `\[btfgen corpus list: 1\]`)
		if r.memory > 512<<20 {
			t.Errorf("%d MB of memory", r.memory>>20)
		}
		r.absent(t, "out.btfa")
	},
	"linked-kernels": func(t *testing.T, c *cases) {
		tree := filepath.Join(c.dir, "linked-kernels/kernels/ubuntu/20.04/x86_64")
		for _, n := range []string{"26", "28", "29", "31"} { // links in the folder are files with the target as text
			name := filepath.Join(tree, "5.4.0-"+n+"-generic.btf")
			to, err := os.ReadFile(name)
			if err == nil {
				err = os.Remove(name)
			}
			if err == nil {
				err = os.Symlink(strings.TrimSpace(string(to)), name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		five := func(path string) (texts []string) {
			for _, n := range []string{"26", "28", "29", "30", "31"} {
				texts = append(texts, `(?m)^ubuntu/20\.04/x86_64/5\.4\.0-`+n+`-generic .*`+path)
			}
			return texts
		}
		const layouts = `(?m)^ubuntu +20\.04 +x86_64 +5\.4\.0-26-generic +0\n.*-28-generic +0\n.*-29-generic +0\n.*-30-generic +1\n.*-31-generic +1\n`
		r := c.run(t, "linked-kernels")
		r.want(t, slices.Concat(five("kernels/"), []string{`t\.btfa: 5 kernels, 2 distinct layouts`, `rc 0`, layouts}, five(`k\.tar!kernels/`))...)
		if strings.Contains(r.output, "8f3c") {
			t.Errorf("the file that links lead to is a kernel:\n%s", r.output)
		}
		for _, pack := range []string{"tar cf h.tar --hard-dereference kernels store", "tar chf h.tar kernels", "tar cf h.tar store kernels; xz -k h.tar; mv h.tar.xz h.tar"} {
			r = c.commands(t, "linked-kernels", pack+"; rm -f k.btfc; btfgen corpus import h.tar -o k.btfc; btfgen corpus lint h.tar; btfgen generate --btf h.tar -o t.btfa prog.o")
			r.want(t, `k\.btfc: 5 kernels`, `\[btfgen corpus import: 0\]`, `5 kernels: 0 errors`, `\[btfgen corpus lint: 0\]`, `t\.btfa: 5 kernels, 2 distinct layouts`, `\[btfgen generate: 0\]`)
		}
		r = c.commands(t, "linked-kernels", "ln -s 20.04 kernels/ubuntu/focal; btfgen corpus list kernels; btfgen corpus list -v kernels; tar cf k.tar kernels store; btfgen corpus list k.tar")
		r.want(t, append(five("kernels/"), `left out as second names of kernels: 1 link \(-v`, `kernels/ubuntu/focal/x86_64/5\.4\.0-30-generic\.btf: is ubuntu/20\.04/x86_64/5\.4\.0-30-generic again: kernels/ubuntu/20\.04/`)...)
	},
	"reduced-dwarf": func(t *testing.T, c *cases) {
		for _, program := range []string{"gcc", "pahole"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip("needs " + program)
			}
		}
		path := "PATH=" + c.bin + ":" + os.Getenv("PATH") + "\n" // the installed pahole, once the case's is removed
		if err := os.Remove(filepath.Join(c.bin, "pahole")); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		const declared = `no usable types: struct task_struct is only declared, as with CONFIG_DEBUG_INFO_REDUCED`
		r := c.run(t, "reduced-dwarf")
		r.want(t, `damaged: vmlinux-5\.4\.0-7-test: .*`+declared, `\[btfgen corpus import: 1\]`)
		r.absent(t, "k.btfc", "t.btfa")
		r = c.commands(t, "reduced-dwarf", path+`mkdir -p t/debian/10/x86_64; B=t/debian/10/x86_64/5.4.0-7-test.btf
			pahole --btf_encode_detached=$B vmlinux-5.4.0-7-test
			btfgen corpus lint t; btfgen generate --btf t -o t.btfa prog.o; btfgen check --btf t prog.o
			gcc -g1 -DREL='"5.4.0-8-test"' -nostdlib -static -Wl,-e,_start vmr.c -o vmlinux-5.4.0-8-test
			btfgen corpus import --as debian/10/x86_64 vmlinux-5.4.0-8-test -o k.btfc`)
		r.want(t, `error: t/debian.*`+declared, `\[btfgen corpus lint: 3\]`, `damaged: t/debian.*`+declared, `\[btfgen generate: 1\]`,
			`damaged: t/debian.*`+declared, `\[btfgen check: 1\]`, `damaged: vmlinux-5\.4\.0-8-test: .*no usable types: functions and no other types, as with gcc -g1`, `\[btfgen corpus import: 1\]`)
		r.absent(t, "k.btfc", "t.btfa")
	},
}
