// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/bootable"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// bootable reads a file of these contents.
func boot(t *testing.T, data []byte, modules ...string) (*bootable.System, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), []string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Files[0].Bootable(t.Context(), modules)
}

// image64 is a bzImage of a 64-bit kernel.
func image64(payload []byte) []byte {
	img := bzImage(payload)
	binary.LittleEndian.PutUint16(img[0x236:], 1)
	return img
}

// moduleOf is a module that depends on others.
func moduleOf(depends string) []byte {
	info := "license=GPL\x00depends=" + depends + "\x00name=x\x00"
	return elfFile(binary.LittleEndian, elf.ET_REL, elf.EM_X86_64, section{".modinfo", 0, []byte(info)})
}

func TestBootable(t *testing.T) {
	slow.Skip(t)
	img := image64(compress("xz", vmlinux(blobLE)))
	const lib = "./lib/modules/6.1.0-1-amd64/"
	package6 := []member{
		{"./boot/config-6.1.0-1-amd64", []byte("CONFIG_BPF=y\n")},
		{"./boot/System.map-6.1.0-1-amd64", []byte("0 T start\n")},
		{lib + "kernel/a.ko", moduleOf("b-b,gone")},
		{lib + "kernel/b_b.ko.xz", compress("xz", moduleOf("c"))},
		{lib + "kernel/unwanted.ko", []byte("not read")},
		{lib + "modules.builtin", []byte("kernel/x.ko\n")},
		{"./boot/vmlinuz-6.1.0-1-amd64", img},
		{lib + "kernel/c.ko", moduleOf("")},
	}
	for name, data := range map[string][]byte{"deb": debOf(package6...), "rpm": rpmOf(package6...)} {
		b, err := boot(t, data, "a")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(b.Image, img) || b.Machine != "x86_64" || b.Release != "6.1.7-test" || string(b.Config) != "CONFIG_BPF=y\n" {
			t.Errorf("%s: %d bytes of %s, configuration %q", name, len(b.Image), b.Machine, b.Config)
		}
		var order []string
		for _, m := range b.Modules {
			order = append(order, m.Name)
		}
		if got := strings.Join(order, " "); got != "c b_b a" || !bytes.Equal(b.Modules[0].ELF, moduleOf("")) {
			t.Errorf("%s: modules in the order %s", name, got)
		}
		if !slices.Equal(b.Missing, []string{"gone"}) {
			t.Errorf("%s: missing %q", name, b.Missing)
		}
	}
	alone, err := boot(t, img)
	if err != nil || !bytes.Equal(alone.Image, img) || alone.Config != nil || len(alone.Modules) > 0 {
		t.Errorf("an image alone: %v, %v", alone, err)
	}
	memory := arm64Image(blobLE)
	for name, data := range map[string][]byte{"Image": memory, "zboot": zboot(compress("xz", memory)), "Image.xz": compress("xz", memory)} {
		b, err := boot(t, data)
		if err != nil || b.Machine != "arm64" || b.Release != "6.1.7-test" || !bytes.Equal(b.Image, memory) {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
}

// TestBootablePackages boots a kernel whose modules and configuration are in other packages.
func TestBootablePackages(t *testing.T) {
	img := image64(compress("xz", vmlinux(blobLE)))
	for name, files := range map[string]map[string]string{
		"Ubuntu": {
			"linux-image-unsigned-6.8.0-31-generic_6.8.0-31.31_amd64.deb": string(debOf(member{"boot/vmlinuz-6.8.0-31-generic", img})),
			"linux-modules-6.8.0-31-generic_6.8.0-31.31_amd64.deb": string(debOf(
				member{"boot/config-6.8.0-31-generic", []byte("CONFIG_BPF=y\n")}, member{"lib/modules/6.8.0-31-generic/kernel/a.ko", moduleOf("b")})),
			"linux-modules-extra-6.8.0-31-generic_6.8.0-31.31_amd64.deb": string(debOf(member{"lib/modules/6.8.0-31-generic/kernel/b.ko", moduleOf("")})),
			"linux-modules-6.8.0-30-generic_6.8.0-30.30_amd64.deb":       string(debOf(member{"boot/config-6.8.0-30-generic", []byte("CONFIG_OTHER=y\n")})),
		},
		"Fedora": {
			"kernel-core-6.8.5-301.fc40.x86_64.rpm": string(rpmOf(
				member{"./lib/modules/6.8.5-301.fc40.x86_64/config", []byte("CONFIG_BPF=y\n")}, member{"./lib/modules/6.8.5-301.fc40.x86_64/vmlinuz", img})),
			"kernel-modules-core-6.8.5-301.fc40.x86_64.rpm": string(rpmOf(member{"./lib/modules/6.8.5-301.fc40.x86_64/kernel/a.ko", moduleOf("b")})),
			"kernel-modules-6.8.5-301.fc40.x86_64.rpm":      string(rpmOf(member{"./lib/modules/6.8.5-301.fc40.x86_64/kernel/b.ko", moduleOf("")})),
		},
		"Debian": {
			"linux-binary-7.2.1-amd64_7.2.1-1_amd64.deb":  string(debOf(member{"usr/lib/modules/7.2.1-amd64/vmlinuz", img})),
			"linux-base-7.2.1-amd64_7.2.1-1_amd64.deb":    string(debOf(member{"usr/lib/modules/7.2.1-amd64/config", []byte("CONFIG_BPF=y\n")})),
			"linux-modules-7.2.1-amd64_7.2.1-1_amd64.deb": string(debOf(member{"usr/lib/modules/7.2.1-amd64/kernel/a.ko", moduleOf("b")}, member{"usr/lib/modules/7.2.1-amd64/kernel/b.ko", moduleOf("")})),
		},
	} {
		c, err := Open(t.Context(), []string{tree(t, files)}, Options{Extras: true})
		if err != nil || len(c.Files) != 1 {
			t.Fatalf("%s: %d kernels, %v", name, len(c.Files), err)
		}
		b, err := c.Files[0].Bootable(t.Context(), []string{"a"})
		if err != nil || !bytes.Equal(b.Image, img) || string(b.Config) != "CONFIG_BPF=y\n" || len(b.Modules) != 2 {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

func TestBootableRefuses(t *testing.T) {
	raceflag.SkipSerial(t)
	img := image64(compress("xz", vmlinux(blobLE)))
	var names []string
	for i := range limits.BootModules + 1 {
		names = append(names, fmt.Sprint("m", i))
	}
	damaged := member{"./lib/modules/6.1.0/a.ko", []byte("\x7fELF and no more")}
	cycle := []member{
		{"./boot/vmlinuz-6.1.0", img}, {"./lib/modules/6.1.0/a.ko", moduleOf("b")}, {"./lib/modules/6.1.0/b.ko", moduleOf("a")},
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string // "" for no error
	}{
		{"32 bits", bzImage(compress("xz", vmlinux(blobLE))), "a 32-bit kernel"},
		{"riscv64", debOf(member{"./boot/vmlinuz-6.1.0", memoryImage("RSC\x05", 0x38, blobLE)}), "not a kernel image for x86_64 or arm64"},
		{"BTF alone", blobLE, "no kernel image"},
		{"two", debOf(member{"./boot/vmlinuz-6.1.0", img}, member{"./boot/vmlinuz-6.2.0", image64(compress("zst", vmlinux(blobLE)))}), "a second kernel"},
		{"two that are one", debOf(member{"./boot/vmlinuz-6.1.0", img}, member{"./lib/modules/6.1.0/vmlinuz", img}), ""},
		{"damaged module", debOf(member{"./boot/vmlinuz-6.1.0", img}, damaged), "a.ko: module: "},
		{"a cycle", debOf(cycle...), ""},
		{"depends on too many", debOf(member{"./boot/vmlinuz-6.1.0", img}, member{"./lib/modules/6.1.0/a.ko", moduleOf(strings.Join(names, ","))}), "modules to load"},
		{"a zboot that is cut short", zboot(compress("xz", arm64Image(blobLE)))[:0x60], "unexpected EOF"},
		{"a large configuration", debOf(member{"./boot/vmlinuz-6.1.0", img}, member{"./boot/config-6.1.0", make([]byte, limits.BootConfig+1)}), "config: "},
	} {
		b, err := boot(t, tt.data, "a")
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, %v, want %q", tt.name, b, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "vmlinuz")
	if err := os.WriteFile(path, img, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), []string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Files[0].Bootable(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestHoldsImage(t *testing.T) {
	for name, data := range map[string][]byte{
		"deb": debOf(member{"./boot/vmlinuz-6.1.0", []byte("x")}), "rpm": rpmOf(), "bzImage": bzImage(nil),
		"no object": elfFile(binary.LittleEndian, elf.ET_REL, elf.EM_BPF), "no archive": []byte("!<arch>\nlib.o/"), "no file": nil,
	} {
		path := filepath.Join(t.TempDir(), name)
		if data != nil {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := bootable.HoldsImage(path), !strings.HasPrefix(name, "no "); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
