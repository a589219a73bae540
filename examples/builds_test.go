// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// blocks returns the blocks of code in a section of a page.
func blocks(t *testing.T, page, section string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("%s has no section %s", page, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var all []string
	for _, m := range regexp.MustCompile("(?ms)^```[a-z]+\n(.*?)^```$").FindAllStringSubmatch(rest, -1) {
		all = append(all, m[1])
	}
	return all
}

// project is a stand-in for the sources of a project that runs bpftool on BTFHub's archive.
type project struct {
	dir, hub string
	t        *testing.T
}

func newProject(t *testing.T, tools ...string) *project {
	t.Helper()
	slow.Skip(t)
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	for _, tool := range append(tools, "tar", "xz", "zstd") {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	p := &project{dir: t.TempDir(), hub: filepath.Join(t.TempDir(), "btfhub-archive"), t: t}
	bin := t.TempDir()
	output(t, "go", "build", "-o", filepath.Join(bin, "btfgen"), "../cmd/btfgen")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	// As BTFHub packs them: RELEASE.btf.tar.xz with the file RELEASE.btf.
	for _, k := range []string{"debian/11/x86_64/5.10.0-30-amd64", "debian/12/x86_64/6.1.0-47-amd64", "debian/12/arm64/6.1.0-50-arm64"} {
		to := filepath.Join(p.hub, k)
		mkdir(t, filepath.Dir(to))
		output(t, "zstd", "-qd", "../testdata/vmlinux/"+k+".btf.zst", "-o", to+".btf")
		output(t, "tar", "cJf", to+".btf.tar.xz", "-C", filepath.Dir(to), filepath.Base(to)+".btf")
		if err := os.Remove(to + ".btf"); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
}

func (p *project) path(name string) string { return filepath.Join(p.dir, name) }

// write writes a file of the project.
func (p *project) write(name, text string) {
	p.t.Helper()
	mkdir(p.t, filepath.Dir(p.path(name)))
	if err := os.WriteFile(p.path(name), []byte(text), 0o666); err != nil {
		p.t.Fatal(err)
	}
}

// object copies a BPF object of testdata.
func (p *project) object(name, from string) {
	p.t.Helper()
	data, err := os.ReadFile("../testdata/bpf/" + from)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(name, string(data))
}

// check compares a file of the project with what bpftool's command makes of a kernel.
func (p *project) check(data []byte, k string, objects ...string) {
	p.t.Helper()
	packed, full := filepath.Join(p.hub, k+".btf.tar.xz"), filepath.Join(p.t.TempDir(), "full.btf")
	output(p.t, "sh", "-c", `tar xJOf "$0" >"$1"`, packed, full)
	one := full + ".min"
	output(p.t, "btfgen", append([]string{"min_core_btf", full, one}, objects...)...)
	want, err := os.ReadFile(one)
	if err != nil {
		p.t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		p.t.Errorf("%s: %d bytes, want the %d of min_core_btf", k, len(data), len(want))
	}
}

// tree returns the names and contents of the BTF below a folder of the project.
func (p *project) tree(dir string) map[string][]byte {
	p.t.Helper()
	files := make(map[string][]byte)
	err := filepath.WalkDir(p.path(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".btf" {
			return err
		}
		name, _ := filepath.Rel(p.path(dir), path)
		files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return files
}

// checkTree checks the tree for x86_64.
func (p *project) checkTree(dir string, objects ...string) {
	p.t.Helper()
	files := p.tree(dir)
	for _, k := range []string{"debian/11/x86_64/5.10.0-30-amd64", "debian/12/x86_64/6.1.0-47-amd64"} {
		p.check(files[k+".btf"], k, objects...)
	}
	if len(files) != 2 {
		p.t.Errorf("%d files, want 2", len(files))
	}
}

// TestBuildBCC makes the object file that bcc's libbpf-tools link, and finds a kernel in it as they do.
func TestBuildBCC(t *testing.T) {
	p := newProject(t, "make", "ld", "nm")
	p.write("Makefile.btfgen", "all: $(OUTPUT)/min_core_btf_tar.o\n"+blocks(t, "../docs/howto-pipelines.md", "bcc's libbpf-tools")[0])
	p.object("out/execsnoop.bpf.o", "execsnoop.bpfel.o")
	p.object("out/opensnoop.bpf.o", "tcplife.bpfel.o")
	output(t, "make", "-C", p.dir, "-f", "Makefile.btfgen", "OUTPUT="+p.path("out"), "ARCH=x86", "BTFHUB_ARCHIVE="+p.hub, "APPS=execsnoop opensnoop")
	symbols := output(t, "nm", p.path("out/min_core_btf_tar.o"))
	for _, name := range []string{"_binary_min_core_btfs_tar_gz_start", "_binary_min_core_btfs_tar_gz_end"} {
		if !strings.Contains(symbols, name) {
			t.Errorf("no symbol %s in\n%s", name, symbols)
		}
	}
	f, err := os.Open(p.path("out/min_core_btfs.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		k, dot := strings.CutPrefix(strings.TrimSuffix(h.Name, ".btf"), "./")
		data, err := io.ReadAll(r)
		if err != nil || !dot || h.Typeflag != tar.TypeReg {
			t.Fatalf("%s, type %c: the tools do not find it (%v)", h.Name, h.Typeflag, err)
		}
		p.check(data, k, p.path("out/execsnoop.bpf.o"), p.path("out/opensnoop.bpf.o"))
		found++
	}
	if found != 2 {
		t.Errorf("%d kernels, want 2", found)
	}
}

// TestBuildBootstrap builds a program of libbpf-bootstrap's kind with the lines of the page.
func TestBuildBootstrap(t *testing.T) {
	slow.Nightly(t)
	p := newProject(t, "make", "cc", "bpftool")
	for _, header := range []string{"bpf/libbpf.h", "zstd.h"} {
		if _, err := os.Stat("/usr/include/" + header); err != nil {
			t.Skip("needs " + header)
		}
	}
	b := blocks(t, "../docs/howto-pipelines.md", "libbpf-bootstrap")
	if len(b) != 3 {
		t.Fatalf("%d blocks, want 3", len(b))
	}
	p.object(".output/minimal.bpf.o", "execsnoop.bpfel.o")
	p.write("minimal.c", `#include <stdio.h>
#include <string.h>
#include <bpf/libbpf.h>
#include "minimal.skel.h"
`+b[1]+`
int main(int argc, char **argv)
{
	struct minimal_bpf *skel;

`+b[2]+`
	if (!skel)
		return 1;
	btfa_release(&found);
	btfa_close(btfs);
	minimal_bpf__destroy(skel);
	return 0;
}
`)
	p.write("Makefile", `OUTPUT := .output
INCLUDES := -I$(OUTPUT) -I$(LIBBTFA)
CFLAGS := -g -Wall -Werror
minimal: $(OUTPUT)/minimal.o
	$(CC) $(CFLAGS) $^ $(ALL_LDFLAGS) -lbpf -lelf -lz -o $@
$(OUTPUT)/minimal.o: minimal.c $(OUTPUT)/minimal.skel.h
	$(CC) $(CFLAGS) $(INCLUDES) -c minimal.c -o $@
$(OUTPUT)/minimal.skel.h: $(OUTPUT)/minimal.bpf.o
	bpftool gen skeleton $< name minimal_bpf >$@
`+b[0])
	lib, err := filepath.Abs("../lib/c")
	if err != nil {
		t.Fatal(err)
	}
	output(t, "make", "-C", p.dir, "BTF="+p.hub, "LIBBTFA="+lib)
	list := output(t, "btfgen", "archive", "list", p.path(".output/minimal.btfa"))
	if !strings.Contains(list, "6.1.0-47-amd64") {
		t.Errorf("the archive has\n%s", list)
	}
	// On a kernel with BTF the program opens its skeleton; elsewhere it says that the archive lacks the kernel.
	cmd := exec.Command("./minimal")
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	if _, has := os.Stat("/sys/kernel/btf/vmlinux"); has == nil && err != nil || has != nil && !strings.Contains(string(out), "the archive has none for it") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestBuildInspektorGadget writes the tree that Inspektor Gadget embeds.
func TestBuildInspektorGadget(t *testing.T) {
	slow.Nightly(t)
	p := newProject(t, "make")
	p.write("Makefile.btfgen", `ARCH_CLEANED = $(subst amd64,x86,$(ARCH))
OUTPUT ?= pkg/btfgen/btfs
BPF_ALL_O_FILES = $(shell find pkg/ -type f -name '*.o')
`+blocks(t, "../docs/howto-pipelines.md", "Inspektor Gadget")[0])
	p.object("pkg/gadgets/exec/exec_x86_bpfel.o", "execsnoop.bpfel.o")
	p.object("pkg/gadgets/maps/maps_bpfel.o", "norelo.bpfel.o")
	p.write("pkg/btfgen/btfs/x86/README.md", "kept\n")
	for range 2 {
		output(t, "make", "-C", p.dir, "-f", "Makefile.btfgen", "ARCH=amd64", "BTFHUB_ARCHIVE="+p.hub)
		p.checkTree("pkg/btfgen/btfs/x86", p.path("pkg/gadgets/exec/exec_x86_bpfel.o"))
	}
	if text, err := os.ReadFile(p.path("pkg/btfgen/btfs/x86/README.md")); err != nil || string(text) != "kept\n" {
		t.Errorf("README.md: %q (%v)", text, err)
	}
}

// TestBuildTracee writes the tree that tracee embeds.
func TestBuildTracee(t *testing.T) {
	slow.Nightly(t)
	p := newProject(t)
	p.object("dist/tracee.bpf.o", "execsnoop.bpfel.o")
	p.write("dist/btfhub/.place-holder", "") // of tracee's Makefile
	p.write("btfhub.sh", "set -e\n"+blocks(t, "../docs/howto-pipelines.md", "tracee")[0])
	t.Setenv("BASEDIR", p.dir)
	t.Setenv("ARCHIVE_DIR", p.hub)
	t.Setenv("ARCH", "x86_64")
	t.Setenv("TRACEE_BPF_CORE", p.path("dist/tracee.bpf.o"))
	output(t, "sh", p.path("btfhub.sh"))
	p.checkTree("dist/btfhub", p.path("dist/tracee.bpf.o"))
}

// ayaStandIn has what the page uses of aya 0.13.
const ayaStandIn = `use std::{convert::Infallible, path::Path};
#[derive(Clone, Copy, Default)]
pub enum Endianness { #[default] Little, Big }
pub struct Btf;
impl Btf {
    pub fn parse_file<P: AsRef<Path>>(_: P, _: Endianness) -> Result<Btf, Infallible> { Ok(Btf) }
    pub fn from_sys_fs() -> Result<Btf, Infallible> { Ok(Btf) }
    pub fn parse(_: &[u8], _: Endianness) -> Result<Btf, Infallible> { Ok(Btf) }
}
pub struct Ebpf;
pub struct EbpfLoader<'a>(Option<&'a Btf>);
impl<'a> EbpfLoader<'a> {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self { Self(None) }
    pub fn btf(&mut self, btf: Option<&'a Btf>) -> &mut Self { self.0 = btf; self }
    pub fn load(&mut self, _: &[u8]) -> Result<Ebpf, Infallible> { Ok(Ebpf) }
}
`

// TestAya compiles the page's program for aya, with a stand-in for aya.
func TestAya(t *testing.T) {
	slow.Nightly(t)
	p := &project{dir: t.TempDir(), t: t}
	uses, body, ok := strings.Cut(blocks(t, "../docs/howto-tracers.md", "Use aya")[1], "\n\n")
	if !ok || !strings.Contains(body, "btfa::find(") {
		t.Fatalf("the page has another program: %s", body)
	}
	const manifest = "[package]\nname = %q\nversion = \"0.13.0\"\nedition = \"2021\"\n"
	p.write("aya/Cargo.toml", fmt.Sprintf(manifest, "aya"))
	p.write("aya/src/lib.rs", ayaStandIn)
	btfa, err := filepath.Abs("../lib/rust")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile(filepath.Join(btfa, "Cargo.toml"))
	if err != nil {
		t.Fatal(err)
	}
	_, profile, _ := strings.Cut(string(settings), "\n[profile.dev]") // other tests have compiled zstd with it
	p.write("app/Cargo.toml", fmt.Sprintf(manifest+"[dependencies]\naya = { path = \"../aya\" }\nbtfa = { path = %q }\n[profile.dev]%s", "app", btfa, profile))
	p.write("app/src/tracer.btfa", "")
	p.write("app/src/main.rs", uses+"\nconst OBJECT: &[u8] = b\"\";\nfn main() -> Result<(), Box<dyn std::error::Error>> {\n"+body+"let _ = &mut ebpf;\nOk(())\n}\n")
	if _, why, err := readers.Cargo(p.path("app"), "check", "--quiet"); err != nil {
		t.Error(err)
	} else if why != "" {
		t.Skip(why)
	}
}

// TestPythonBundle unpacks a bundle with the lines of the page.
func TestPythonBundle(t *testing.T) {
	p := newProject(t, "python3")
	code := blocks(t, "../docs/howto-tracers.md", "Use Python")[1]
	if lines := strings.Count(strings.ReplaceAll(code, "\n\n", "\n"), "\n"); lines > 7 {
		t.Errorf("%d lines, want at most 7", lines)
	}
	p.write("unpack.py", code)
	p.object("exec.bpf.o", "execsnoop.bpfel.o")
	const k = "debian/12/x86_64/6.1.0-47-amd64"
	for _, layout := range []string{"btfhub", "bcc"} {
		bundle, out := p.path(layout+".tar.gz"), p.path(layout+".btf")
		output(t, "btfgen", "generate", "-q", "--btf", p.hub, "--layout", layout, "-o", bundle, p.path("exec.bpf.o"))
		output(t, "python3", p.path("unpack.py"), bundle, k, out)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		p.check(data, k, p.path("exec.bpf.o"))
	}
}
