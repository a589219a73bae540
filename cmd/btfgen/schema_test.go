// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/internal/testing/testregistry"
	"github.com/btfgen/btfgen/internal/testing/testrepo"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// schemas compiles docs/schema, where schemas refer to each other. The keys are their names without .schema.json.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	files, err := filepath.Glob("../../docs/schema/*.schema.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d schemas, %v", len(files), err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	ids := make(map[string]string)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		id := doc.(map[string]any)["$id"].(string)
		if !strings.HasSuffix(id, "/docs/schema/"+filepath.Base(f)) {
			t.Errorf("%s has the $id %s", f, id)
		}
		if err := c.AddResource(id, doc); err != nil {
			t.Fatal(err)
		}
		ids[strings.TrimSuffix(filepath.Base(f), ".schema.json")] = id
	}
	all := make(map[string]*jsonschema.Schema)
	for name, id := range ids {
		if all[name], err = c.Compile(id); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// schemaRuns are command lines whose standard output must match a schema: one document or, if lines is set, a line for each
// result or finding. $K has kernels, $B objects; $I is a kernel image, $D a package with one, $P the program to boot them with.
var schemaRuns = []struct {
	schema string
	lines  bool
	status int
	args   string
}{
	{"generate", false, 0, "generate --btf $K/debian/12 -o tree/ $B/execsnoop.bpfel.o"},
	{"generate", false, 0, "generate --btf $K/debian/12 --btf $K/debian/13/x86_64 -o x.btfa --manifest x.json $B/execsnoop.bpfel.o"},
	{"generate", false, 0, "generate --btf $K/debian/12 -o y.btfa --reuse x.btfa $B/execsnoop.bpfel.o"},
	{"generate", false, 3, "generate -v --btf $K/debian/11 --btf $K/debian/12/x86_64 --btf bad -o z.btfa $B/biolat.bpfel.o $B/broken.bpfel.o $B/ambiguous.bpfel.o $B/norelo.bpfel.o words"},
	{"min_core_btf", false, 3, "min_core_btf $K/debian/12/x86_64/6.1.0-47-amd64.btf.zst min.btf $B/ambiguous.bpfel.o"},
	{"relolog", true, 0, "relolog --btf $K/debian/12/x86_64 $B/execsnoop.bpfel.o"},
	{"relolog", true, 3, "relolog --btf $K/debian/12/x86_64 --btf bad $B/execsnoop.bpfel.o $B/invalid.bpfel.o words"},
	{"verify", true, 0, "verify x.btfa --btf $K/debian/12 --btf $K/debian/13/x86_64 $B/execsnoop.bpfel.o"},
	{"verify", true, 3, "verify --covers x.btfa $B/execsnoop.bpfel.o $B/runqlat.bpfel.o"},
	{"verify", true, 3, "verify tree --btf $K/debian/11 --btf $K/debian/12/x86_64 $B/runqlat.bpfel.o $B/shapes.bpfel.o words"},
	{"generate", false, 0, "generate --btf $K/debian/12/x86_64 --shard 1/1 -o s.btfa $B/kfuncs.bpfel.o $B/match.bpfel.o"},
	{"verify", true, 3, "verify s.btfa --btf $K/debian/12/x86_64 $B/kfuncs.bpfel.o $B/match.bpfel.o"},
	{"generate", false, 0, "generate --btf $K/debian/12/x86_64 -o match.btfa $B/match.bpfel.o"},
	{"generate", false, 3, "generate --btf $K/debian/12/x86_64 --keep struct:no_such_type -o kept.btfa"},
	{"verify", true, 0, "verify match.btfa --btf $K/debian/12/x86_64 $B/match.bpfel.o"},
	{"check", false, 3, "check --btf $K/debian/11 --btf $K/debian/12/x86_64 --btf bad $B/broken.bpfel.o $B/changed.bpfel.o $B/biolat.bpfel.o $B/kfuncs.bpfel.o $B/guards.bpfel.o $B/context.bpfel.o words"},
	{"check", false, 3, "check --btf $K $B/tool.bpfel.o $B/lsmhooks.bpfel.o $B/longkeys.bpfel.o --when tool*:x86_only=>=5 --json"},
	{"check", false, 3, "check --btf $K versions --when tool_v511.o:=>=5.11"},
	{"check", false, 3, "check --btf $K versions --one-of tool_v61.o:,tool_v511.o: --when tool_v511.o:=<6"},
	{"check", false, 3, "check --btf $K versions"},
	{"check", false, 3, "check --btf $K/debian/11 --btf $K/debian/12/x86_64 differ"},
	{"check", false, 3, "check --btf $K $B/sleepable.bpfel.o $B/ranges.bpfel.o"},
	{"check", false, 0, "check --btf $K $B/sections.bpfel.o $B/unlinked.bpfel.o"},
	{"check", false, 0, "check --btf $K/debian/12/x86_64 two"},
	{"check", false, 0, "check --btf $K --target one_has_it=sched_prepare_exec $B/dups.bpfel.o"},
	{"check", false, 3, "check --btf modular $B/guards.bpfel.o $B/since.bpfel.o $B/flavors.bpfel.o"},
	{"check_boot", false, 3, "check --boot $I --btfgen $P $B/broken.bpfel.o $B/guards.bpfel.o $B/kfuncs.bpfel.o $B/context.bpfel.o $B/lsmhooks.bpfel.o"},
	{"check_boot", false, 3, "check --boot $D --btfgen $P $B/guards.bpfel.o $B/module.bpfel.o $B/since.bpfel.o $B/helpers.bpfel.o $B/longkeys.bpfel.o"},
	{"archive", false, 3, "archive convert x.btfa --select debian=9 -o none"},
	{"archive", false, 0, "archive convert x.btfa y.btfa -o m.btfa"},
	{"archive", false, 0, "archive convert x.btfa -o x.tar.gz"},
	{"archive_list", false, 0, "archive list x.btfa"},
	{"archive_list", false, 0, "archive list shard.btfa"},
	{"archive_list", false, 0, "archive list --sizes x.btfa"},
	{"archive", false, 0, "archive convert x.btfa -o extracted/"},
	{"archive", false, 0, "archive convert x.btfa --select debian/12/x86_64/6.1.0-47-amd64 -o one.btf"},
	{"archive", false, 0, "archive convert x.btfa -o x.tar.zst"},
	{"archive_diff", false, 0, "archive diff x.btfa y.btfa"},
	{"archive_diff", false, 0, "archive diff y.btfa x.tar.zst"},
	{"generate", false, 0, "generate --btf $K/debian/12 -o other.btfa other/execsnoop.bpfel.o"},
	{"archive_diff", false, 0, "archive diff x.btfa other.btfa"},
	{"archive_lookup", false, 0, "archive lookup x.btfa --os-release os --release 6.1.0-47-amd64 --arch x86_64"},
	{"archive_lookup", false, 3, "archive lookup x.btfa --os-release os --release 6.1.0-99-amd64 --arch x86_64"},
	{"archive_lookup", false, 3, "archive lookup twins.btfa --os-release os --release 6.1.0-48-amd64 --arch x86_64"},
	{"corpus_list", true, 3, "corpus list $K/debian/12 bad"},
	{"corpus_list", true, 3, "corpus list --long $K/debian/12 $K/debian/13/armhf bad"},
	{"corpus_lint", false, 3, "corpus lint $K/debian/12 bad"},
	{"corpus_push", false, 0, "corpus push pushed.btfc localhost/some/corpus:v1 --dry-run"},
	{"corpus_push", false, 0, "corpus push pushed.btfc localhost/some/corpus:v1"},
	{"corpus_push", false, 0, "archive push x.btfa localhost/some/corpus:v2"},
	{"corpus_pull", false, 0, "archive pull localhost/some/corpus:v2 -o pulled.btfa"},
	{"corpus_pull", false, 0, "corpus pull localhost/some/corpus:v1 --dry-run"},
	{"corpus_pull", false, 0, "corpus pull localhost/some/corpus:v1 debian/12 -o pulled.btfc"},
	{"corpus_fetch", false, 0, "corpus fetch test/1 --catalogue my.yaml --dry-run"},
	{"corpus_fetch", false, 0, "corpus fetch test/1 --catalogue my.yaml --without-btf --dry-run"},
	{"corpus_fetch", false, 0, "corpus fetch test/1 --catalogue my.yaml --packages packages --select release=6.1.0-1-amd64"},
	{"corpus_fetch", false, 3, "corpus fetch test/1 test/2 --catalogue my.yaml -o fetched.btfc"},
	{"corpus_packed", false, 3, "corpus import $K/debian/12/x86_64 bad -o x.btfc"},
	{"corpus_packed", false, 0, "corpus import odd -o odd.btfc"},
	{"corpus_list", true, 0, "corpus list --long odd.btfc"},
	{"corpus_list", true, 0, "corpus list --long made.btfc"},
	{"corpus", false, 0, "corpus extract made.btfc -o made/"},
	{"corpus_packed", false, 0, "corpus import made.btfc -o known.btfc"},
	{"corpus_packed", false, 0, "corpus import known -o known.btfc"},
	{"corpus_list", true, 0, "corpus list --long known"},
	{"corpus_packed", false, 0, "corpus import known $D --as *.deb=debian/10/x86_64 -o whole.btfc"},
	{"corpus_list", true, 0, "corpus list --long whole.btfc"},
	{"corpus", false, 0, "corpus extract $K/debian/12/x86_64 -o dir/"},
	{"explain", false, 0, "explain"},
	{"explain", false, 0, "explain helper-missing damaged"},
	{"corpus", false, 0, "corpus extract $K/debian/12/x86_64 -o file.btf"},
}

// writeMade writes a .btfc file with BTF that pahole made.
func writeMade(t *testing.T, path string, data []byte) {
	t.Helper()
	w, err := btfc.NewWriter(nil, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	k, err := btfc.Prepare(btfc.Input{
		Key: kernel.Key{ID: "debian", VersionID: "10", Arch: "x86_64", Release: "5.4.0-7-test"}, BTF: data, Made: btfc.Made{By: "pahole v1.24"},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Plan(t.Context(), k)
	err = errors.Join(err, w.Make(t.Context(), k))
	var b bytes.Buffer
	if _, failed := w.WriteTo(&b); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	write(t, path, b.String())
}

// elsewhere has fields that no run of schemaRuns prints, with the tests that do: of modules that define a type differently, of an archive
// in a booted kernel, of predictions that the analysis is not sure of, and of warnings, which only reports have.
var elsewhere = map[string]string{
	"generate modules":                     "TestModulesTogether",
	"min_core_btf modules":                 "TestModulesTogether",
	"check_boot archive":                   "TestCheckBootArchive",
	"check_boot unjudged":                  "TestTables",
	"check_boot reach":                     "TestCheckBoot",
	"check_boot other":                     "TestChanged",
	"check_boot where":                     "TestChanged",
	"corpus_fetch kernels_without_modules": "TestFetchModules",
	"archive_lookup like":                  "TestScript/archive_lookup",
	"check tail_called":                    "TestTailCalledOption",
}

// TestSchemas checks that every command has --json, and that its output matches docs/schema.
func TestSchemas(t *testing.T) {
	slow.Skip(t)
	all := schemas(t)
	td, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	image := bootKernel(t, "CONFIG_BPF_SYSCALL=y\n")
	_, program := bootFiles(t)
	t.Chdir(t.TempDir())
	vmlinux, module := modular(t)
	write(t, "modular/debian/12/x86_64/odd.btf", string(vmlinux))
	write(t, "modular/debian/12/x86_64/odd/mod.btf", string(module))
	const deb = "linux-image-4.18.0-test_1_amd64.deb"
	write(t, deb, string(packageOf(t, vmlinux, module)))
	write(t, "bad/debian/12/x86_64/bad.btf", "words")
	write(t, "bad/debian/12/x86_64/empty.btf", "")
	write(t, "words", "words")
	two := "a program that embeds two"
	for _, name := range []string{"tcplife", "execsnoop"} {
		data, err := os.ReadFile(filepath.Join(td, "bpf", name+".bpfel.o"))
		if err != nil {
			t.Fatal(err)
		}
		two += string(data)
		if name == "tcplife" {
			write(t, "other/execsnoop.bpfel.o", string(data)) // the object has changed
		}
	}
	write(t, "two", two)
	for _, name := range []string{"tool_v511", "tool_v61"} {
		data, err := os.ReadFile(filepath.Join(td, "bpf", "broken.bpfel.o"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, "versions/"+name+".o", string(data))
	}
	for from, to := range map[string]string{"broken": "differ/tool_v511.o", "tcplife": "differ/tool_v61.o"} {
		data, err := os.ReadFile(filepath.Join(td, "bpf", from+".bpfel.o"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, string(data))
	}
	write(t, "os", "ID=debian\nVERSION_ID=12\n")
	kernel, err := os.ReadFile(filepath.Join(td, "vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, "some/kernel.btf.zst", string(kernel))
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("abc", btf.KindStruct, false, 0, 4)
	odd := b.Bytes()
	writeMade(t, "made.btfc", bytes.Clone(odd))
	for suffix, text := range map[string]string{".btf": string(odd), ".config": "CONFIG_BPF=y\n", ".kallsyms": "t _stext\n"} {
		write(t, "known/debian/10/x86_64/5.4.0-7-test"+suffix, text)
	}
	odd[btf.HeaderLen]++ // the rest of a name is a name
	write(t, "odd/debian/12/x86_64/odd.btf", string(odd))
	for _, r := range []string{"47", "49"} {
		write(t, "twins/debian/12/x86_64/6.1.0-"+r+"-amd64.btf.zst", string(kernel))
	}
	fakeQEMU(t, `printf '%s\n' '@btfgen {"kind":"hello","name":"6.1.0"}' \
		'@btfgen {"kind":"program","name":"sound","attach":"attached"}' \
		'@btfgen {"kind":"program","name":"no_guard","errno":22,"error":"invalid","log":"invalid func","alone":"loads"}' \
		'@btfgen {"kind":"program","name":"unknown_helper","alone":"loads"}' '@btfgen {"kind":"end"}'`)
	expand := func(args string) []string {
		return strings.Fields(strings.NewReplacer("$K", td+"/vmlinux", "$B", td+"/bpf", "$I", image, "$D", deb, "$P", program).Replace(args))
	}
	var msgs bytes.Buffer
	if s := run(t.Context(), expand("generate --btf twins -o twins.btfa $B/execsnoop.bpfel.o"), &msgs, &msgs); s != statusOK {
		t.Fatalf("exit status %d: %s", s, &msgs)
	}
	info := archive.Info{
		Shard: archive.Shard{Index: 1, N: 2}, Objects: []archive.Object{archive.NewObject("o", nil, "arm64")},
		Relocations: []archive.Relocations{{Arch: "arm64", Sum: []byte{1, 2, 3, 4, 5, 6, 7, 8}}},
	}
	fetches := testrepo.Missing("apt") == ""
	if fetches { // one of the packages is not served
		repo := testrepo.New(t, "apt")
		repo.Add(repo.Release(1), odd)
		gone := repo.Add(repo.Release(2), odd)
		repo.Index()
		if err := os.Remove(filepath.Join(repo.Dir, gone)); err != nil {
			t.Fatal(err)
		}
		first := repo.Catalogue(repo.URL, repo.Key())
		_, entry, _ := strings.Cut(repo.Catalogue(repo.URL+"/none", repo.Key()), "\n")
		write(t, "my.yaml", first+strings.Replace(entry, `"1"`, `"2"`, 1))
	} else {
		t.Log("corpus fetch is not tested: it needs ", testrepo.Missing("apt"))
	}
	var shard bytes.Buffer
	if err := archive.Write(t.Context(), &shard, info, nil); err != nil {
		t.Fatal(err)
	}
	write(t, "shard.btfa", shard.String())

	testregistry.Folder(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if s := run(t.Context(), expand("corpus import twins -o pushed.btfc"), &msgs, &msgs); s != statusOK {
		t.Fatalf("exit status %d: %s", s, &msgs)
	}
	seen := make(map[string]map[string]bool) // fields of each schema
	ran := make(map[string]bool)
	for _, r := range schemaRuns {
		if r.schema == "corpus_fetch" && !fetches {
			ran["corpus fetch"] = true
			continue
		}
		args := append(expand(r.args), "--json")
		ran[args[0]], ran[strings.Join(args[:2], " ")] = true, true
		var out, msgs bytes.Buffer
		if s := run(t.Context(), args, &out, &msgs); s != r.status {
			t.Errorf("%s: exit status %d, want %d: %s", r.args, s, r.status, &msgs)
		}
		parts := [][]byte{out.Bytes()}
		if r.lines {
			parts = slices.Collect(bytes.Lines(out.Bytes()))
		}
		for _, p := range parts {
			var v any
			if err := json.Unmarshal(p, &v); err != nil {
				t.Errorf("%s: %v: %.300s", r.args, err, p)
				continue
			}
			name := r.schema
			if m, _ := v.(map[string]any); r.lines && m["class"] != nil && name != "verify" {
				name = "finding"
			}
			if all[name] == nil {
				t.Errorf("%s: no schema %s", r.args, name)
				continue
			}
			validate(t, all[name], p)
			for _, n := range []string{name, "finding"} { // other documents contain findings
				if seen[n] == nil {
					seen[n] = make(map[string]bool)
				}
				fields(v, seen[n])
			}
		}
	}
	of := properties(all["finding"], make(map[*jsonschema.Schema]bool))
	for name, s := range all {
		for _, f := range properties(s, make(map[*jsonschema.Schema]bool)) {
			if name == "corpus_fetch" && !fetches {
				continue
			}
			if name == "relolog" || name != "finding" && slices.Contains(of, f) { // TestRelologSchema checks more of relolog
				continue
			}
			if !seen[name][f] && elsewhere[name+" "+f] == "" {
				t.Errorf("%s: nothing has %s", name, f)
			}
		}
	}
	classes := all["finding"].Properties["class"].Enum.Values
	for c := range meanings {
		if !slices.Contains(classes, any(string(c))) {
			t.Errorf("the schema of findings does not know %s", c)
		}
	}
	for name := range commands(newApp(&msgs, &msgs).Commands, "") {
		if _, finds := commandClasses[name]; finds && !ran[name] { // commands about btfgen itself have no findings
			t.Errorf("%s: no run with --json", name)
		}
	}
}

// modular returns the BTF of a kernel with few types, and of a module with a struct that a program of guards.bpfel.o handles only if it
// has bi_bdev, and one that a program of module.bpfel.o needs.
func modular(t *testing.T) (vmlinux, module []byte) {
	t.Helper()
	vmlinux = testbtf.Types(t, binary.LittleEndian, "struct block_device 8: self *block_device 0")
	const u64, pointer, names = 4, 6, "bio\x00bi_bdev\x00xfs_inode\x00i_ino\x00"
	at := binary.LittleEndian.Uint32(vmlinux[20:]) // the module's strings continue the kernel's
	name := func(s string) uint32 { return at + uint32(strings.Index(names, s)) }
	const oneMember = uint32(btf.KindStruct)<<24 | 1
	types := []uint32{name("bio"), oneMember, 8, name("bi_bdev"), pointer, 0, name("xfs_inode"), oneMember, 8, name("i_ino"), u64, 0}
	size := uint32(4 * len(types))
	module = []byte{0x9f, 0xeb, 1, 0}
	for _, w := range append([]uint32{btf.HeaderLen, 0, size, size, uint32(len(names))}, types...) {
		module = binary.LittleEndian.AppendUint32(module, w)
	}
	return vmlinux, append(module, names...)
}

// packageOf returns a Debian package with a kernel and a module.
func packageOf(t *testing.T, vmlinux, module []byte) []byte {
	t.Helper()
	elfOf := func(typ elf.Type, blob []byte) []byte {
		sections := []testelf.Section{{Name: ".BTF", Data: blob}, {Name: ".modinfo", Data: []byte("name=mod\x00")}}
		data, _ := (&testelf.File{Order: binary.LittleEndian, Type: typ, Machine: elf.EM_X86_64, Sections: sections}).Build()
		return data
	}
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	for _, m := range []struct {
		name string
		data []byte
	}{
		{"./boot/vmlinuz-4.18.0-test", bzImage(elfOf(elf.ET_EXEC, vmlinux))},
		{"./lib/modules/4.18.0-test/kernel/mod.ko", elfOf(elf.ET_REL, module)},
	} {
		if err := w.WriteHeader(&tar.Header{Name: m.name, Size: int64(len(m.data)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	deb := []byte("!<arch>\n")
	for _, m := range []struct{ name, text string }{{"debian-binary", "2.0\n"}, {"data.tar", data.String()}} {
		deb = fmt.Appendf(deb, "%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", m.name, 0, 0, 0, "100644", len(m.text), m.text)
	}
	return deb
}

// commands returns all commands without subcommands, by name.
func commands(list []*cli.Command, prefix string) map[string]*cli.Command {
	all := make(map[string]*cli.Command)
	for _, c := range list {
		if name := prefix + c.Name; len(c.Subcommands) > 0 {
			maps.Copy(all, commands(c.Subcommands, name+" "))
		} else {
			all[name] = c
		}
	}
	return all
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
