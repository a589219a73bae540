// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
)

const (
	someConfig = "#\n# Linux/x86 6.1.90 Kernel Configuration\n#\nCONFIG_BPF=y\n# CONFIG_KPROBES is not set\nCONFIG_HZ=250\n"
	keptConfig = "# Linux/x86 6.1.90 Kernel Configuration\nCONFIG_BPF=y\nCONFIG_HZ=250\n"

	someSymbols = "ffffffff81000000 T _stext\nffffffff81000010 t do_it.isra.0\n0000000000000000 D jiffies\n" +
		"ffffffff82000000 r __ksymtab_do_it\nffffffffc0000000 t nf_it\t[nf]\nffffffffc0000000 t bpf_prog_6deef7357e7b4530\t[bpf]\n"
	keptSymbols = "t _stext\nt do_it.isra.0\nd jiffies\nt nf_it [nf]\n"

	stub = "ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n"
)

// TestExtras finds what comes with kernels wherever that is done.
func TestExtras(t *testing.T) {
	blob := string(blobLE)
	zst := func(s string) string { return string(compress("zst", []byte(s))) }
	deb := func(config, symbols string) string {
		return string(debOf(member{"data.tar.xz", compress("xz", tarOf(
			member{"./boot/System.map-6.1.0-1-amd64", []byte(symbols)},
			member{"./boot/config-6.1.0-1-amd64", []byte(config)},
			member{"./boot/vmlinuz-6.1.0-1-amd64", bzImage(compress("gz", vmlinux(blobLE)))},
			member{"./usr/src/other/config", []byte("CONFIG_OTHER=y\n")},
		))}))
	}
	for name, tt := range map[string]struct {
		files           map[string]string
		config, symbols string
	}{
		"none":       {map[string]string{"debian/12/x86_64/6.1.btf": blob}, "", ""},
		"beside":     {map[string]string{"debian/12/x86_64/6.1.btf.zst": zst(blob), "debian/12/x86_64/6.1.config": someConfig, "debian/12/x86_64/6.1.kallsyms": someSymbols}, keptConfig, keptSymbols},
		"compressed": {map[string]string{"debian/12/x86_64/6.1.btf": blob, "debian/12/x86_64/6.1.config.zst": zst(someConfig), "debian/12/x86_64/6.1.kallsyms.zst": zst(keptSymbols)}, keptConfig, keptSymbols},
		"another's":  {map[string]string{"debian/12/x86_64/6.1.btf": blob, "debian/12/x86_64/6.2.config": someConfig}, "", ""},
		"boot":       {map[string]string{"boot/vmlinuz-6.1.0-1-amd64": string(vmlinux(blobLE)), "boot/config-6.1.0-1-amd64": someConfig, "boot/System.map-6.1.0-1-amd64": someSymbols}, keptConfig, keptSymbols},
		"modules":    {map[string]string{"lib/modules/6.1.0/vmlinuz": string(vmlinux(blobLE)), "lib/modules/6.1.0/config": someConfig}, keptConfig, ""},
		"package":    {map[string]string{"linux-image-6.1.0-1-amd64_1_amd64.deb": deb(someConfig, someSymbols)}, keptConfig, keptSymbols},
		"stub":       {map[string]string{"linux-image-6.1.0-1-amd64_1_amd64.deb": deb(someConfig, stub)}, keptConfig, ""},
		"packages": {map[string]string{
			"linux-image-unsigned-6.8.0-31-generic_6.8.0-31.31_amd64.deb": string(debOf(member{"boot/vmlinuz-6.8.0-31-generic", bzImage(compress("gz", vmlinux(blobLE)))})),
			"linux-modules-6.8.0-31-generic_6.8.0-31.31_amd64.deb": string(debOf(
				member{"boot/config-6.8.0-31-generic", []byte(someConfig)}, member{"boot/System.map-6.8.0-31-generic", []byte(someSymbols)},
				member{"lib/modules/6.8.0-31-generic/kernel/nf.ko", elfFileOf(splitLE)})),
		}, keptConfig, keptSymbols},
		"package of its own": {map[string]string{
			"linux-binary-7.2.1-amd64_7.2.1-1_amd64.deb": string(debOf(member{"usr/lib/modules/7.2.1-amd64/vmlinuz", bzImage(compress("gz", vmlinux(blobLE)))})),
			"linux-base-7.2.1-amd64_7.2.1-1_amd64.deb":   string(debOf(member{"usr/lib/modules/7.2.1-amd64/config", []byte(someConfig)}, member{"usr/lib/modules/7.2.1-amd64/System.map", []byte(stub)})),
		}, keptConfig, ""},
		"tar":         {map[string]string{"all.tar": string(tarOf(member{"debian/12/x86_64/6.1.btf", blobLE}, member{"debian/12/x86_64/6.1.config", []byte(someConfig)}))}, keptConfig, ""},
		"nothing set": {map[string]string{"debian/12/x86_64/6.1.btf": blob, "debian/12/x86_64/6.1.config": "# CONFIG_X is not set\n"}, "", ""},
	} {
		dir := tree(t, tt.files)
		_, kernels, errs := readAll(t, Options{Extras: true}, dir)
		if len(kernels) != 1 || len(errs) > 0 {
			t.Errorf("%s: %d kernels, %v", name, len(kernels), errs)
			continue
		}
		if got := string(kernels[0].Config); got != tt.config {
			t.Errorf("%s: configuration %q, want %q", name, got, tt.config)
		}
		if got := string(kernels[0].Symbols); got != tt.symbols {
			t.Errorf("%s: symbols %q, want %q", name, got, tt.symbols)
		}
		c, kernels, errs := readAll(t, Options{}, dir)
		if len(kernels) != 1 || len(errs) > 0 || len(c.Skipped) > 0 || kernels[0].Config != nil || kernels[0].Symbols != nil {
			t.Errorf("%s: without them: %d kernels, %v, %v", name, len(kernels), errs, c.Skipped)
		}
	}
}

// TestExtrasOfTwo gives each of two kernels in a tar file its own.
func TestExtrasOfTwo(t *testing.T) {
	dir := tree(t, map[string]string{"all.tar": string(tarOf(
		member{"debian/12/x86_64/6.1.btf", blobLE}, member{"debian/12/x86_64/6.1.config", []byte(someConfig)},
		member{"debian/12/x86_64/6.2.btf", blobLE}, member{"debian/12/x86_64/6.2.kallsyms", []byte(someSymbols)},
	))})
	_, kernels, errs := readAll(t, Options{Extras: true}, dir)
	if len(kernels) != 2 || len(errs) > 0 {
		t.Fatalf("%d kernels, %v", len(kernels), errs)
	}
	if k := kernels[0]; string(k.Config) != keptConfig || k.Symbols != nil {
		t.Errorf("first: %q, %q", k.Config, k.Symbols)
	}
	if k := kernels[1]; k.Config != nil || string(k.Symbols) != keptSymbols {
		t.Errorf("second: %q, %q", k.Config, k.Symbols)
	}
}

// TestDamagedExtras checks that a kernel loses only its damaged extras.
func TestDamagedExtras(t *testing.T) {
	zst := compress("zst", []byte(someConfig))
	for name, tt := range map[string]struct{ file, content, want string }{
		"truncated": {"6.1.config.zst", string(zst[:len(zst)-5]), "zstd"},
		"long line": {"6.1.config", "CONFIG_X=" + strings.Repeat("x", limits.ExtraLine), "config: a line of more than 65536 bytes"},
		"too many":  {"6.1.config.zst", string(compress("zst", []byte(strings.Repeat("CONFIG_X="+strings.Repeat("x", 1000)+"\n", 5000)))), "more than 4 MiB"},
	} {
		dir := tree(t, map[string]string{"debian/12/x86_64/6.1.btf": string(blobLE), "debian/12/x86_64/" + tt.file: tt.content})
		_, kernels, errs := readAll(t, Options{Extras: true}, dir)
		if len(kernels) != 1 || kernels[0].Config != nil || len(errs) != 1 {
			t.Errorf("%s: %d kernels, %v", name, len(kernels), errs)
			continue
		}
		if text := errs[0].Error(); !strings.Contains(text, tt.want) || !strings.Contains(text, tt.file) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestWithConfig reads a kernel with a configuration of its own, and with another one.
func TestWithConfig(t *testing.T) {
	c, err := Open(t.Context(), []string{tree(t, map[string]string{"6.1.btf": string(blobLE), "6.1.config": "CONFIG_OWN=y\n"})}, Options{Extras: true})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"": "CONFIG_OWN=y\n", someConfig: keptConfig} {
		f, err := c.Files[0].WithConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Read(t.Context(), func(k *Kernel) error {
			if string(k.Config) != want {
				t.Errorf("%q, want %q", k.Config, want)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Files[0].WithConfig([]byte("CONFIG_A=\x00\n")); err == nil {
		t.Error("no error for a NUL byte")
	}
}
