// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// baseTypes is vmlinux for the tests of modules.
const baseTypes = `struct task_struct 16: pid int 0, tgid int 4
proto #regs int: a int
func vfs_read #regs
func register_kprobe #regs`

// kernelDir makes a tree with one kernel and modules, given by their BTF, and returns its root.
func kernelDir(t *testing.T, modules map[string][]byte) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "debian", "12", "x86_64")
	vmlinux := testbtf.Types(t, binary.LittleEndian, baseTypes)
	write(t, filepath.Join(dir, "6.1.0-9-amd64.btf"), string(vmlinux))
	for name, data := range modules {
		write(t, filepath.Join(dir, "6.1.0-9-amd64", name+".btf"), string(data))
	}
	return root
}

// packedFile makes a .btfc file with one kernel, whether its BTF is valid or not, and returns its path.
func packedFile(t *testing.T, btf []byte, modules ...btfc.Module) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "k.btfc")
	w, err := btfc.NewWriter(nil, filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	key, err := kernel.ParseKey("debian/12/x86_64/6.1.0-9-amd64")
	if err != nil {
		t.Fatal(err)
	}
	k, err := btfc.Prepare(btfc.Input{Key: key, BTF: btf, Modules: modules})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Plan(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if err := w.Make(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	write(t, path, out.String())
	return path
}

// moduleBTF returns the BTF of a module of baseTypes.
func moduleBTF(t *testing.T, types string) []byte {
	return testbtf.Module(t, binary.LittleEndian, baseTypes, types)
}

// objectFile writes an object that reads fields, and returns its path.
func objectFile(t *testing.T, types, asks string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mod.o")
	write(t, path, string(testbtf.Object(t, binary.LittleEndian, types, asks)))
	return path
}

// runAll runs btfgen and returns its exit status and everything that it prints.
func runAll(args ...string) (status int, text string) {
	var out bytes.Buffer
	status = run(context.Background(), args, &out, &out)
	return status, out.String()
}

// TestBadModule has a module whose BTF does not fit its kernel's. It is left out and named, and the kernel and its other modules are used.
func TestBadModule(t *testing.T) {
	const longer = baseTypes + "\nstruct more 4: a_long_name_of_a_member int 0"
	badModule(t, testbtf.Module(t, binary.LittleEndian, longer, "struct adapter 8: name more 4"))
	// As many types and bytes of strings, but pid begins within task_struct of the kernel.
	shifted := strings.NewReplacer("task_struct", "task", "register_kprobe", "register_another_probe").Replace(baseTypes)
	badModule(t, testbtf.Module(t, binary.LittleEndian, shifted, "struct adapter 8: pid int 4"))
}

// badModule has one such module, called foreign.
func badModule(t *testing.T, foreign []byte) {
	t.Helper()
	good := moduleBTF(t, "struct adapter 8: name int 4")
	dir := kernelDir(t, map[string][]byte{"cxgb4": good, "foreign": foreign})
	inFile := packedFile(t, testbtf.Types(t, binary.LittleEndian, baseTypes), btfc.Module{Name: "cxgb4", BTF: good}, btfc.Module{Name: "foreign", BTF: foreign})
	obj := objectFile(t, "struct adapter 8: name int 0", "program kp\nbyte_off struct adapter.name")
	for _, source := range []string{dir, inFile} {
		out := filepath.Join(t.TempDir(), "out") + "/"
		imported := filepath.Join(t.TempDir(), "k.btfc")
		for _, args := range [][]string{
			{"generate", "--btf", source, "-o", out, obj},
			{"verify", "--btf", source, out, obj},
			{"relolog", "--btf", source, obj},
			{"check", "--btf", source, obj},
			{"corpus", "import", source, "-o", imported},
		} {
			status, text := runAll(args...)
			if status != statusFindings || strings.Count(text, "damaged:") != 1 || !strings.Contains(text, "foreign") || strings.Contains(text, "no kernel") {
				t.Errorf("%s: exit status %d:\n%s", args, status, text)
			}
		}
		if status, text := runAll("check", "--btf", imported, obj); status != statusOK || !strings.Contains(text, "needs module cxgb4") {
			t.Errorf("what was imported: exit status %d:\n%s", status, text)
		}
	}
}

// TestImportRepaired imports BTF with a dangling type ID, then the repaired file: the first is damaged, and the second takes its place,
// also in a file that has the first. Kernels encoded against a replaced one stay.
func TestImportRepaired(t *testing.T) {
	good := testbtf.Types(t, binary.LittleEndian, baseTypes)
	bad := bytes.Clone(good)
	at := bytes.Index(bad, []byte{1, 0, 0, 0x0d, 1, 0, 0, 0}) // a prototype with one parameter, which returns type 1
	if at < 0 {
		t.Fatal("no prototype")
	}
	bad[at+4], bad[at+5] = 0xe7, 3 // 999
	dir := func(btf []byte, release string) string {
		root := t.TempDir()
		write(t, filepath.Join(root, "debian/12/x86_64", release+".btf"), string(btf))
		return root
	}
	const release = "6.1.0-9-amd64"
	packed := filepath.Join(t.TempDir(), "k.btfc")
	if status, text := runAll("corpus", "import", dir(bad, release), dir(good, "6.1.0-8-amd64"), "-o", packed); status != statusFindings ||
		!strings.Contains(text, "damaged:") || !strings.Contains(text, "refers to type 999") || !strings.Contains(text, "1 added") {
		t.Errorf("bad BTF: exit status %d:\n%s", status, text)
	}
	old := packedFile(t, bad)
	if status, text := runAll("corpus", "import", dir(good, "6.1.0-10-amd64"), "-o", old); status != statusOK {
		t.Errorf("another kernel: exit status %d:\n%s", status, text)
	}
	obj := objectFile(t, "struct task_struct 8: tgid int 0", "program kp\nbyte_off struct task_struct.tgid")
	for _, file := range []string{packed, old} {
		if status, text := runAll("corpus", "import", dir(good, release), "-o", file); status != statusOK || !strings.Contains(text, "1 added") {
			t.Errorf("repaired BTF: exit status %d:\n%s", status, text)
		}
		if status, text := runAll("generate", "--btf", file, "-o", t.TempDir()+"/out/", obj); status != statusOK || !strings.Contains(text, "2 kernels") {
			t.Errorf("generate: exit status %d:\n%s", status, text)
		}
		if status, text := runAll("corpus", "import", dir(good, release), "-o", file); status != statusOK || !strings.Contains(text, "1 there already") {
			t.Errorf("again: exit status %d:\n%s", status, text)
		}
	}
	other := testbtf.Types(t, binary.LittleEndian, baseTypes+"\nstruct more 4: a int 0")
	if status, text := runAll("corpus", "import", dir(other, release), "-o", old); status != statusFindings || !strings.Contains(text, "conflicting") {
		t.Errorf("another valid kernel: exit status %d:\n%s", status, text)
	}
}

// TestImportModules imports a kernel with more modules than the file has, such as a repaired one. The fuller kernel replaces the other.
func TestImportModules(t *testing.T) {
	adapter, state := moduleBTF(t, "struct adapter 8: name int 4"), moduleBTF(t, "struct state 8: name int 4")
	packed := filepath.Join(t.TempDir(), "k.btfc")
	for _, tt := range []struct {
		modules map[string][]byte
		status  int
		text    string
	}{
		{map[string][]byte{"a": adapter}, statusOK, "1 added"},
		{map[string][]byte{"a": adapter, "b": state}, statusOK, "1 added"},
		{map[string][]byte{"a": adapter}, statusFindings, "conflicting"},
		{map[string][]byte{"a": state, "b": state, "c": state}, statusFindings, "conflicting"},
	} {
		if status, text := runAll("corpus", "import", kernelDir(t, tt.modules), "-o", packed); status != tt.status || !strings.Contains(text, tt.text) {
			t.Errorf("%d modules: exit status %d:\n%s", len(tt.modules), status, text)
		}
	}
}

// adapters are modules that define one struct with its field at different offsets.
func adapters(t *testing.T) map[string][]byte {
	return map[string][]byte{
		"cxgb3": moduleBTF(t, "struct adapter 8: name int 0\nfunc cxgb3_fn #regs"),
		"cxgb4": moduleBTF(t, "struct adapter 8: name int 4\nfunc cxgb4_fn #regs"),
	}
}

// TestModulesOption chooses modules by name.
func TestModulesOption(t *testing.T) {
	dir := kernelDir(t, adapters(t))
	obj := objectFile(t, "struct adapter 8: name int 0", "program kp\nbyte_off struct adapter.name")
	out := filepath.Join(t.TempDir(), "k.btfa")
	vmlinux := filepath.Join(dir, "debian/12/x86_64/6.1.0-9-amd64.btf")
	extracted := filepath.Join(t.TempDir(), "out")
	if status, text := runAll("corpus", "extract", "--modules", "cxgb3", dir, "-o", extracted+"/"); status != statusOK {
		t.Errorf("extract: exit status %d:\n%s", status, text)
	}
	if all, err := filepath.Glob(extracted + "/debian/12/x86_64/6.1.0-9-amd64/*"); err != nil || len(all) != 1 {
		t.Errorf("extract: %q, %v", all, err)
	}
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"generate", "--modules", "cxgb4", "--btf", dir, "-o", out, "--manifest", strings.TrimSuffix(out, "btfa") + "json"}, statusOK, "1 kernel"},
		{[]string{"verify", "--modules", "cxgb4", "--btf", dir, out}, statusOK, "0 differences"},
		{[]string{"relolog", "--modules", "cxgb4", "--btf", dir}, statusOK, "0 → 4"},
		{[]string{"relolog", "--modules", "cxgb3", "--btf", dir}, statusOK, "1 resolved"},
		{[]string{"relolog", "--modules", "none", "--btf", dir}, statusOK, "[no-candidate]"},
		{[]string{"relolog", "--modules", "cxgb5,cxgb4", "--btf", dir}, statusFindings, "--modules cxgb5: no kernel has BTF of this module; did you mean cxgb"},
		{[]string{"check", "--modules", "cxgb4", "--btf", dir}, statusOK, "needs module cxgb4"},
		{[]string{"check", "--modules", "cxgb4,", "--btf", dir}, statusUsage, "a name is missing"},
		{[]string{"min_core_btf", "--modules", "nf_nat", vmlinux, filepath.Join(t.TempDir(), "out.btf")}, statusFindings, "--modules nf_nat: no kernel"},
	} {
		if status, text := runAll(append(tt.args, obj)...); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s: exit status %d:\n%s", tt.args, status, text)
		}
	}
}

// TestModulesReused holds that the manifest has the choice of modules, and that kernels are reused only with the same choice.
func TestModulesReused(t *testing.T) {
	defer func(v string) { version = v }(version)
	version = "v0.0.0-test" // only a build with a version reuses
	dir := kernelDir(t, adapters(t))
	obj := objectFile(t, "struct adapter 8: name int 0", "program kp\nbyte_off struct adapter.name")
	made := t.TempDir()
	old, manifest := filepath.Join(made, "k.btfa"), filepath.Join(made, "k.json")
	if status, text := runAll("generate", "--modules", "cxgb4", "--btf", dir, "-o", old, "--manifest", manifest, obj); status != statusOK {
		t.Fatalf("exit status %d:\n%s", status, text)
	}
	var m struct{ Modules []string }
	if data, err := os.ReadFile(manifest); err != nil || json.Unmarshal(data, &m) != nil || !slices.Equal(m.Modules, []string{"cxgb4"}) {
		t.Errorf("manifest: modules %q, %v", m.Modules, err)
	}
	for _, tt := range []struct{ modules, want string }{
		{"cxgb4", "1 of them reused"},
		{"cxgb3", "is not reused: it was made with other modules"},
		{"cxgb3,cxgb4", "is not reused: it was made with other modules"},
		{"none", "is not reused: it was made with other modules"},
		{"all", "is not reused: it was made with other modules"},
	} {
		_, text := runAll("generate", "--modules", tt.modules, "--btf", dir, "-o", filepath.Join(t.TempDir(), "k.btfa"), "--reuse", old, obj)
		if !strings.Contains(text, tt.want) {
			t.Errorf("--modules %s: want %q:\n%s", tt.modules, tt.want, text)
		}
	}
}

// TestModulesTogether reads a struct that two modules define differently. It is ambiguous only where both are loaded.
func TestModulesTogether(t *testing.T) {
	dir := kernelDir(t, adapters(t))
	obj := objectFile(t, "struct adapter 8: name int 0", "program vfs_read\nbyte_off struct adapter.name")
	for _, tt := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{"check"}, statusOK, []string{
			"1 may fail", "needs module cxgb3 or cxgb4 to be loaded", "only where modules cxgb3 and cxgb4 are loaded together;",
		}},
		{[]string{"check", "--modules", "cxgb4"}, statusOK, []string{"needs module cxgb4 to be loaded"}},
		{[]string{"generate", "-o", t.TempDir() + "/o/"}, statusFindings, []string{
			"ambiguous: ", "modules cxgb3 and cxgb4 define the type differently; --modules chooses",
		}},
	} {
		status, text := runAll(append(tt.args, "--btf", dir, obj)...)
		for _, want := range tt.want {
			if status != tt.status || !strings.Contains(text, want) {
				t.Errorf("%s: exit status %d, want %s:\n%s", tt.args, status, want, text)
			}
		}
	}
}
