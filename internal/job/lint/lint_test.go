// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// blob returns small BTF with a long, a function, and structs, each "name" or "name.member". "name*3" stands for three.
func blob(t *testing.T, order binary.ByteOrder, long uint32, structs ...string) []byte {
	t.Helper()
	b := btf.NewBuilder(order)
	id := b.Type("long", btf.KindInt, false, 0, long)
	b.Word(1<<24 | long*8)
	proto := b.Type("", btf.KindFuncProto, false, 0, 0)
	b.Type("schedule", btf.KindFunc, false, 1, uint32(proto))
	for _, s := range structs {
		n := 1
		if name, times, ok := strings.Cut(s, "*"); ok {
			s = name
			if _, err := fmt.Sscan(times, &n); err != nil {
				t.Fatal(err)
			}
		}
		name, member, ok := strings.Cut(s, ".")
		for range n {
			if !ok {
				b.Type(name, btf.KindStruct, false, 0, 0)
				continue
			}
			b.Type(name, btf.KindStruct, false, 1, long)
			b.Word(b.String(member), uint32(id), 0)
		}
	}
	return b.Bytes()
}

// tree writes files below a new directory; a key that ends in -> is a link.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		p := filepath.Join(dir, strings.TrimSuffix(name, "->"))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile
		if strings.HasSuffix(name, "->") {
			err = func(p string, data []byte, _ os.FileMode) error { return os.Symlink(string(data), p) }
		}
		if err := err(p, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t *testing.T, dir string, jobs int) *Report {
	t.Helper()
	c, err := corpus.Open(context.Background(), []string{dir}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(context.Background(), walk.Config{Corpus: c, Jobs: jobs})
	if err != nil {
		t.Fatal(err)
	}
	for i := range rep.Findings {
		f := &rep.Findings[i]
		for _, s := range []*string{&f.Kernel, &f.Path, &f.Detail} {
			*s = strings.ReplaceAll(*s, dir+string(filepath.Separator), "")
		}
	}
	return rep
}

func brief(rep *Report) (list []string) {
	for _, f := range rep.Findings {
		list = append(list, strings.TrimSuffix(fmt.Sprintf("%s %s %s", f.Code.Name, f.Kernel, f.Detail), " "))
	}
	return list
}

func TestFindings(t *testing.T) {
	le := binary.LittleEndian
	good := blob(t, le, 8, "pt_regs.r15")
	const x = "debian/12/x86_64/"
	outside := tree(t, map[string][]byte{"text": []byte("some text"), "empty": nil})
	for _, tc := range []struct {
		name  string
		files map[string][]byte
		want  []string
	}{
		{"nothing", nil, nil},
		{"empty", map[string][]byte{x + "e.btf": nil}, []string{"empty " + x + "e.btf"}},
		{"no types", map[string][]byte{x + "e.btf": btf.NewBuilder(le).Bytes()}, []string{"empty " + x + "e BTF without types"}},
		{"zeros", map[string][]byte{x + "e.btf": make([]byte, 4096)}, []string{"damaged " + x + "e.btf empty archive, or zeros"}},
		{"cut short", map[string][]byte{x + "e.btf": good[:len(good)-8]}, []string{
			fmt.Sprintf("damaged %se.btf btf: truncated: %d bytes of %d", x, len(good)-8, len(good))}},
		{"bad type", map[string][]byte{x + "e.btf": bytes.Replace(good, []byte{1, 0, 0, 12}, []byte{1, 0, 0, 31}, 1)}, []string{
			"damaged " + x + "e types: type 3 at byte 28: unknown kind 31, and no layout section to skip it by"}},
		{"link", map[string][]byte{"debian/bookworm->": []byte("12")}, nil},
		{"links to files that are no kernels", map[string][]byte{x + "e.btf->": []byte(outside + "/text"), x + "f.btf->": []byte(outside + "/empty")},
			[]string{"empty " + x + "f.btf", "damaged " + x + "e.btf not BTF, ELF, an archive or a kernel image"}},
		{"link to itself", map[string][]byte{x + "e.btf->": []byte("e.btf")}, []string{"dangling-link " + x + "e.btf link: too many links"}},
		{"dangling link", map[string][]byte{x + "e.btf->": []byte("gone.btf")}, []string{"dangling-link " + x + "e.btf"}},
		{"markers", map[string][]byte{x + "e.btf.failed": nil, x + "e.btf.hasbtf": nil}, nil},
		{"same key", map[string][]byte{"z/debian/12/amd64/good.btf": good}, nil},
		{"key conflict", map[string][]byte{"z/debian/12/amd64/good.btf": blob(t, le, 8, "pt_regs.r15", "x")},
			[]string{"key-conflict debian/12/x86_64/good unlike " + x + "good.btf"}},
		{"cut enumerators", map[string][]byte{x + "e.btf": testbtf.Types(t, le, "enum a 8: A 1, B 0\nenum b 8: C 1\nenum c 4: D 1\nenum64 d 8: E 1\nproto # int\nfunc f #")},
			[]string{"cut-enumerators " + x + "e 2 enums of 8 bytes, such as a"}},
		{"no key", map[string][]byte{"some.btf": good}, []string{"no-key some.btf"}},
		{"wrong arch", map[string][]byte{"debian/12/arm64/e.btf": good}, []string{
			"wrong-arch debian/12/arm64/e struct pt_regs is that of x86_64, the path says arm64"}},
		{"wrong registers", map[string][]byte{"debian/12/arm64/e.btf": blob(t, le, 8, "pt_regs.strange")}, []string{
			"wrong-arch debian/12/arm64/e struct pt_regs has no pstate, on arm64 it has"}},
		{"wrong byte order", map[string][]byte{x + "e.btf": blob(t, binary.BigEndian, 8)}, []string{
			"wrong-arch " + x + "e the BTF is big-endian, x86_64 is little-endian"}},
		{"wrong pointer", map[string][]byte{x + "e.btf": blob(t, le, 4)}, []string{
			"wrong-arch " + x + "e long has 4 bytes, on x86_64 it has 8"}},
		{"unknown arch", map[string][]byte{"debian/12/vax/vax.btf": blob(t, le, 4)}, []string{"no-key debian/12/vax/vax.btf"}},
		{"few copies", map[string][]byte{x + "e.btf": blob(t, le, 8, "a*100", "b")}, nil},
		{"many copies", map[string][]byte{x + "e.btf": blob(t, le, 8, "a*60", "task_struct*60", "b")}, []string{
			"undeduplicated " + x + "e 118 of 121 named structs are copies"}},
		{"debug kernel", map[string][]byte{x + "e.btf": blob(t, le, 8, "raw_spinlock.magic", "lockdep_map.key", "task_struct.kasan_depth")}, []string{
			"debug-kernel " + x + "e CONFIG_DEBUG_SPINLOCK, CONFIG_LOCKDEP, CONFIG_KASAN"}},
		{"software KASAN", map[string][]byte{x + "e.btf": blob(t, le, 8, "task_struct.kasan_depth", "kasan_global.beg")}, []string{
			"debug-kernel " + x + "e CONFIG_KASAN_GENERIC"}},
		{"hardware KASAN", map[string][]byte{x + "e.btf": blob(t, le, 8, "task_struct.comm", "kasan_cache.is_kmalloc", "kasan_track.pid", "kasan_alloc_meta.x")}, nil},
		{"no debug kernel", map[string][]byte{x + "e.btf": blob(t, le, 8, "raw_spinlock.raw_lock", "lockdep_map", "task_struct.comm", "mutex.owner")}, nil},
		{"name of a public collection", map[string][]byte{x + "a12-5.10-2021-12-arm64.btf": good}, []string{
			"no-release " + x + "a12-5.10-2021-12-arm64"}},
		{"stray module", map[string][]byte{"modules/fedora/40/x86_64/6.8/nf_nat.btf": splitBTF(t, good, "x")}, []string{
			"stray-modules modules/fedora/40/x86_64/6.8/nf_nat.btf"}},
		{"module", map[string][]byte{x + "good/nf_nat.btf": splitBTF(t, good, "x")}, nil},
		{"module of other kernels", map[string][]byte{
			x + "good/nf_nat.btf": splitBTF(t, good, "x"),
			x + "e.btf":           blob(t, le, 8, "module.btf_data"), // could have modules
			x + "f.btf":           blob(t, le, 8, "module.name"),
		}, []string{"no-modules " + x + "e"}},
		{"module that does not fit", map[string][]byte{x + "good/nf_nat.btf": splitBTF(t, blob(t, le, 8, "a_long_name_of_a_struct"), "x")}, []string{
			"damaged " + x + "good types: type 5 (struct) has a name at byte 39, strings end at 29"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string][]byte{x + "good.btf": good}
			for name, data := range tc.files {
				files[name] = data
			}
			dir := tree(t, files)
			rep := run(t, dir, 1)
			if d := cmp.Diff(tc.want, brief(rep)); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
			if d := cmp.Diff(rep, run(t, dir, 3)); d != "" {
				t.Errorf("with 3 workers:\n%s", d)
			}
			if n := rep.Errors + rep.Warnings + rep.Notes; n != len(rep.Findings) {
				t.Errorf("%d findings counted, %d listed", n, len(rep.Findings))
			}
		})
	}
}

// splitBTF returns split BTF of a module with some structs, on top of base.
func splitBTF(t *testing.T, base []byte, structs ...string) []byte {
	t.Helper()
	view, err := btf.New(base, nil)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	strEnd := le.Uint32(base[20:])
	var types, strs []byte
	for _, s := range structs {
		n := 1
		if name, times, ok := strings.Cut(s, "*"); ok {
			s = name
			fmt.Sscan(times, &n)
		}
		off := strEnd + uint32(len(strs))
		strs = append(append(strs, s...), 0)
		for range n {
			for _, v := range []uint32{off, uint32(btf.KindStruct) << 24, 0} {
				types = le.AppendUint32(types, v)
			}
		}
	}
	out := slices.Clone(base[:24])
	for i, v := range []int{0, len(types), len(types), len(strs)} {
		le.PutUint32(out[8+4*i:], uint32(v))
	}
	out = append(append(out, types...), strs...)
	var m btf.BTF
	if err := m.Load(t.Context(), out, view); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReal checks that real kernels of nine kinds have no findings but one: Linux 5.10 has __PERF_SAMPLE_CALLCHAIN_EARLY, 1<<63. It checks that their machine is recognized.
func TestReal(t *testing.T) {
	c, err := corpus.Open(context.Background(), []string{testinput.Path(t, "testdata", "vmlinux")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := walk.Config{Corpus: c, Jobs: 2}
	rep, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cut := func(f Finding) bool {
		return f.Code == CutEnumerators && f.Kernel == "debian/11/x86_64/5.10.0-30-amd64" && strings.HasSuffix(f.Detail, "such as perf_event_sample_format")
	}
	if len(rep.Findings) != 1 || !cut(rep.Findings[0]) || rep.Kernels < 9 {
		t.Errorf("%d kernels, findings: %v", rep.Kernels, rep.Findings)
	}
	in := new(inspector)
	cfg.Jobs = 1
	_, err = walk.Kernels(context.Background(), cfg, func() *inspector { return in }, func(in *inspector, _ int, k *corpus.Kernel) error {
		f := in.inspect(t.Context(), k)
		if f.funcs < 10000 || f.names < 5000 || f.structs <= f.names || f.types < f.structs {
			t.Errorf("%s: %d functions, %d names of %d structs, %d types", k.Name, f.funcs, f.names, f.structs, f.types)
		}
		regs := in.found["pt_regs"]
		for _, arch := range strings.Fields("x86_64 i386 arm64 arm ppc64le ppc64 s390x riscv64 loongarch64 mips mipsel mips64 mips64el sparc64") {
			if wrong := contradiction(arch, "", &in.btf, &regs); (wrong == "") != (arch == k.Key.Canonical().Arch) {
				t.Errorf("%s as %s: %q", k.Name, arch, wrong)
			}
		}
		if m := machine.OfKernel(t.Context(), &in.btf); m != k.Key.Canonical().Arch {
			t.Errorf("%s is taken for %q", k.Name, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKASAN compares the kinds of KASAN that are found with the functions that each kind adds.
func TestKASAN(t *testing.T) {
	generic, tagged := 0, 0
	in := new(inspector)
	testinput.Each(t, testinput.Corpus(t), func(k *corpus.Kernel) {
		f := in.inspect(t.Context(), k)
		funcs := make(map[string]bool)
		for id := range btf.TypeID(in.btf.NumTypes()) {
			if fn := in.btf.Type(id); fn.Kind() == btf.KindFunc {
				funcs[string(fn.Name())] = true
			}
		}
		if got := slices.Contains(f.debug, "KASAN_GENERIC"); got != funcs["__asan_load8"] {
			t.Errorf("%s: options %v, instrumented %v", k.Name, f.debug, !got)
		}
		if funcs["__asan_load8"] {
			generic++
		}
		if funcs["kasan_init_hw_tags"] {
			tagged++
			if len(f.debug) > 0 {
				t.Errorf("%s has hardware tags, reported as a debug kernel: %v", k.Name, f.debug)
			}
		}
	})
	if os.Getenv("BTFGEN_CORPUS") == "" {
		t.Skip("needs BTFGEN_CORPUS: kernels with KASAN")
	}
	t.Logf("%d kernels with generic KASAN, %d with hardware tags", generic, tagged)
	if generic == 0 || tagged == 0 {
		t.Error("the corpus lacks one kind")
	}
}

func TestCanceled(t *testing.T) {
	dir := tree(t, map[string][]byte{"debian/12/x86_64/good.btf": blob(t, binary.LittleEndian, 8)})
	c, err := corpus.Open(context.Background(), []string{dir}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, walk.Config{Corpus: c}); err != context.Canceled {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// TestSum checks that a kernel and modules with a wrong SHA-256 in a .btfc file are reported as damaged.
func TestSum(t *testing.T) {
	raceflag.SkipSerial(t)
	base := blob(t, binary.LittleEndian, 8, "a")
	path := filepath.Join(t.TempDir(), "x.btfc")
	w, err := btfc.NewWriter(nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for i := range 4 {
		key := kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: fmt.Sprintf("6.%d", i)}
		modules := []btfc.Module{{Name: "nf_nat", BTF: splitBTF(t, base, fmt.Sprintf("m%d", i))}}
		testinput.Add(t, w, key, base, modules)
		base = blob(t, binary.LittleEndian, 8, fmt.Sprintf("s%d", i))
	}
	var file bytes.Buffer
	if _, err := w.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := brief(run(t, path, 1)); got != nil {
		t.Errorf("findings %q", got)
	}
	f, err := btfc.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	testinput.WrongSum(t, path, f.Entries()[1].Sum)
	testinput.WrongSum(t, path, f.Entries()[2].ModulesSum)
	var got []string
	for _, f := range run(t, path, 1).Findings {
		if f.Code == Damaged && strings.Contains(f.Detail, "SHA-256") {
			got = append(got, strings.TrimPrefix(f.Path, path+"!"))
		}
	}
	want := []string{"debian/12/x86_64/6.1", "debian/12/x86_64/6.2"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestIndexed compares the list of a .btfc file from its index with the list from its kernels. It reads those without a shape, which are
// of an older btfgen.
func TestIndexed(t *testing.T) {
	kernels := map[string]binary.ByteOrder{"debian/12/x86_64/6.1": binary.LittleEndian, "debian/12/s390x/6.1": binary.BigEndian, "debian/12/armhf/6.1": binary.LittleEndian}
	write := func(shapes bool) string {
		w, err := btfc.NewWriter(nil, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		for _, name := range slices.Sorted(maps.Keys(kernels)) {
			long := uint32(8)
			if strings.Contains(name, "armhf") {
				long = 4
			}
			key, err := kernel.ParseKey(name)
			if err != nil {
				t.Fatal(err)
			}
			in := btfc.Input{Key: key, BTF: blob(t, kernels[name], long, "a", "b.x"), Made: btfc.Made{By: "pahole v1.24"}}
			in.Extras = btfc.Extras{Config: []byte("CONFIG_BPF=y\n"), Symbols: []byte("t x\n")}
			if kernels[name] == binary.LittleEndian {
				in.Modules = []btfc.Module{{Name: "m", BTF: splitBTF(t, in.BTF, "c")}}
			}
			if shapes {
				b, err := btf.New(in.BTF, nil)
				if err != nil {
					t.Fatal(err)
				}
				in.Shape = btfc.ShapeOf(b)
			}
			k, err := btfc.Prepare(in)
			if err != nil {
				t.Fatal(err)
			}
			if added, err := w.Plan(t.Context(), k); err != nil || !added {
				t.Fatal(added, err)
			}
			if err := w.Make(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if _, err := w.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if shapes { // so that no kernel can be read
			clear(out.Bytes()[len(btfc.Magic)+1:][:50])
		}
		path := filepath.Join(t.TempDir(), "x.btfc")
		if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list := func(path string, modules *selection.Modules) (all []Entry, skipped int) {
		c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{Extras: true, Modules: modules})
		if err != nil {
			t.Fatal(err)
		}
		all, errs, err := Read(t.Context(), walk.Config{Corpus: c, Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i].Path, all[i].Disk = strings.TrimPrefix(all[i].Path, path), 0
			all[i].DiskModules, all[i].DiskExtras = 0, 0
		}
		return all, len(errs)
	}
	with, without := write(true), write(false)
	want, skipped := list(without, nil)
	if len(want) != 3 || skipped > 0 || want[0].Pointer != 4 || want[1].ByteOrder != big || want[2].Types != 5 || want[2].ModuleBytes == 0 {
		t.Fatalf("%+v, %d skipped", want, skipped)
	}
	got, skipped := list(with, nil)
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{}, Details{})); d != "" || skipped > 0 {
		t.Errorf("%d skipped (-read +indexed):\n%s", skipped, d)
	}
	if _, skipped := list(with, selection.NoModules()); skipped == 0 {
		t.Error("the index does not show which modules are chosen, but no kernel was read")
	}
}
