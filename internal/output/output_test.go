package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// tree returns the files below a directory, and directories without files as "name/".
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		if d.IsDir() {
			if l, _ := os.ReadDir(p); len(l) == 0 {
				files[name+"/"] = ""
			}
			return nil
		}
		b, err := os.ReadFile(p)
		files[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o777), os.WriteFile(p, []byte(data), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
}

func same(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, tree(t, dir)); d != "" {
		t.Errorf("%s (-want +got):\n%s", dir, d)
	}
}

// A file is replaced when all of the new one is there, not before.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	put(t, dir, map[string]string{"x": "old"})
	broken := errors.New("broken")
	err := WriteFile(path, func(w io.Writer) error {
		if err := text("new")(w); err != nil {
			return err
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
			t.Errorf("holds %q (%v)", b, err)
		}
		return broken
	})
	if err != broken {
		t.Errorf("error %v", err)
	}
	same(t, dir, map[string]string{"x": "old"})
	if err := WriteFile(path, text("new")); err != nil {
		t.Error(err)
	}
	same(t, dir, map[string]string{"x": "new"})
	for path, want := range map[string]string{
		dir:                             "is a directory",
		filepath.Join(dir, "no", "x"):   "no such file or directory",
		filepath.Join(path, "x"):        "not a directory",
		filepath.Join(dir, "x\x00y"):    "invalid argument",
		filepath.Join(dir, "sub") + "/": "",
	} {
		if err := WriteFile(path, text("x")); err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	same(t, dir, map[string]string{"x": "new"})
}

// A directory gets all files or none.
func TestWriteDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	files := []File{{"d/1", []byte("one")}, {"d/e/2", []byte("two")}, {"3", []byte("three")}}
	for range 2 {
		if err := WriteDir(dir, files); err != nil {
			t.Fatal(err)
		}
		same(t, dir, map[string]string{"d/1": "one", "d/e/2": "two", "3": "three"})
	}
	put(t, dir, map[string]string{"other": "mine"})
	if err := WriteDir(dir, []File{{"3", []byte("drei")}, {"f/g/4", []byte("vier")}}); err != nil {
		t.Fatal(err)
	}
	now := map[string]string{"d/1": "one", "d/e/2": "two", "3": "drei", "other": "mine", "f/g/4": "vier"}
	same(t, dir, now)
	for want, file := range map[string]string{
		filepath.Join(dir, "d") + ": is a directory":         "d",
		filepath.Join(dir, "other") + ": is not a directory": "other/a/b",
		filepath.Join(dir, "3") + ": is not a directory":     "3/a",
	} {
		if err := WriteDir(dir, []File{{"1st", nil}, {"new/2nd", nil}, {file, nil}}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		same(t, dir, now)
	}
	if err := WriteDir(filepath.Join(dir, "3"), files); err == nil || !strings.HasSuffix(err.Error(), "3: is not a directory") {
		t.Error(err)
	}
	if err := WriteDir(filepath.Join(dir, "fresh"), []File{{"a", nil}, {"a/b", nil}}); err == nil {
		t.Error("a file that is a directory")
	}
	same(t, dir, now)
}

// What a dead run was moving gets to its place with the next run, and is found until then.
func TestMoving(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"a": "old", "d/b": "old", ".btfgen.7.moving/a": "new", ".btfgen.7.moving/e/c": "new", ".btfgen.8.tmp/a": "part"})
	got, err := Moving(dir)
	if d := cmp.Diff(map[string]string{"a": filepath.Join(dir, ".btfgen.7.moving/a"), "e/c": filepath.Join(dir, ".btfgen.7.moving/e/c")}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if err := WriteDir(dir, []File{{"d/b", []byte("newest")}}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, map[string]string{"a": "new", "d/b": "newest", "e/c": "new"})
	if got, err := Moving(dir); len(got) > 0 || err != nil {
		t.Error(got, err)
	}
}

// What runs that live are making is left alone, and what is nobody's business too.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	d, err1 := createDir(dir)
	f, err2 := createFile(dir, 0o666)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	others := map[string]string{".btfgen.json": "", "x.tmp": "", ".x.tmp": "", "btfgen.tmp/x": "", ".btfgen.tmp.x/y": ""}
	put(t, dir, others)
	if err := os.Symlink(filepath.Join(dir, "btfgen.tmp"), filepath.Join(dir, ".btfgen.link.tmp")); err != nil {
		t.Fatal(err)
	}
	clean(dir)
	for _, p := range []string{d.path, f.path, filepath.Join(dir, ".btfgen.link.tmp")} {
		if _, err := os.Lstat(p); err != nil {
			t.Error(err)
		}
	}
	os.Remove(filepath.Join(dir, ".btfgen.link.tmp"))
	d.file.Close()
	f.file.Close() // as when a process ends
	clean(dir)
	same(t, dir, others)
}

// Several at once are not in each other's way.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{".btfgen.1.tmp": "left"})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 25 {
				name := fmt.Sprint(n)
				d := OpenDir(dir)
				err := errors.Join(
					WriteFile(filepath.Join(dir, name), text(name)),
					WriteDir(dir, []File{{"d/" + name, []byte(name)}, {"e/" + name, []byte(name)}}),
					d.Put("g/"+name+"/f", text(name)), d.Close(),
				)
				if err = errors.Join(err, d.Remove("g/absent")); err != nil {
					t.Errorf("%d, %d: %v", n, i, err)
				}
			}
		})
	}
	wg.Wait()
	want := make(map[string]string)
	for n := range 8 {
		name := fmt.Sprint(n)
		for _, p := range []string{name, "d/" + name, "e/" + name, "g/" + name + "/f"} {
			want[p] = name
		}
	}
	same(t, dir, want)
}

// Links stay, and so do the mode and owner of what they lead to, on other file systems as well.
func TestReplaced(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "output"); err == nil {
		defer os.RemoveAll(shm)
		elsewhere = shm
	}
	target := filepath.Join(elsewhere, "x")
	for _, write := range []func() error{
		func() error { return WriteFile(filepath.Join(dir, "x"), text("1")) },
		func() error { return WriteDir(dir, []File{{"x", []byte("1")}}) },
		func() error {
			d := OpenDir(dir)
			return errors.Join(d.Put("x", text("1")), d.Close())
		},
	} {
		for _, old := range []bool{false, true} {
			os.Remove(target)
			if old {
				put(t, elsewhere, map[string]string{"x": "0"})
				if err := os.Chmod(target, 0o604); err != nil {
					t.Fatal(err)
				}
			}
			os.Remove(filepath.Join(dir, "x"))
			if err := os.Symlink(target, filepath.Join(dir, "x")); err != nil {
				t.Fatal(err)
			}
			if err := write(); err != nil {
				t.Fatal(err)
			}
			if to, err := os.Readlink(filepath.Join(dir, "x")); to != target {
				t.Error(to, err)
			}
			same(t, elsewhere, map[string]string{"x": "1"})
			if fi, err := os.Stat(target); err != nil || old && fi.Mode() != 0o604 {
				t.Error(fi.Mode(), err)
			}
			same(t, dir, map[string]string{"x": "1"})
		}
	}
}

func TestReal(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"d/e/x": ""})
	for link, to := range map[string]string{"l": "d/e", "d/up": "../d/e/new", "d/e/back": "../../x", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"l/x": "d/e/x", "l/y": "d/e/y", "d/up": "d/e/new", "l/back": "x", "loop": "loop", "absent/x": "absent/x", "l": "d/e",
	} {
		if got := Real(filepath.Join(dir, path)); got != filepath.Join(dir, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestAbandon lets a process end in the middle of everything.
func TestAbandon(t *testing.T) {
	if dir := os.Getenv("OUTPUT_ABANDON"); dir != "" {
		d := OpenDir(dir)
		d.Put("put", text("new"))
		WriteFile(filepath.Join(dir, "x"), func(w io.Writer) error {
			text("new")(w)
			return d.Put("y", func(w io.Writer) error {
				text("new")(w)
				Abandon()
				go WriteFile(filepath.Join(dir, "late"), text("late"))
				os.Exit(7)
				return nil
			})
		})
	}
	dir := t.TempDir()
	old := map[string]string{"x": "old", "y": "old"}
	put(t, dir, old)
	cmd := exec.Command(os.Args[0], "-test.run=^TestAbandon$")
	cmd.Env = append(os.Environ(), "OUTPUT_ABANDON="+dir)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("%v: %s", err, out)
	}
	old["put"] = "new"
	same(t, dir, old)
}

// What cannot be replaced is written to.
func TestDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	if err := WriteFile("/dev/null", text("x")); err != nil {
		t.Error(err)
	}
	if err := WriteFile("/dev/full", text("x")); err == nil || err.Error() != "/dev/full: no space left on device" {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := os.Symlink("/dev/null", filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	if err := WriteDir(dir, []File{{"a", nil}, {"x", nil}}); err == nil || !strings.HasSuffix(err.Error(), "x: is not a regular file") {
		t.Error(err)
	}
	if l, _ := os.ReadDir(dir); len(l) != 1 {
		t.Error(l)
	}
	// A name for what is open is no name on disk.
	f, err := os.Create(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := WriteFile(fmt.Sprintf("/dev/fd/%d", f.Fd()), text("through")); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(f); string(b) != "through" {
		t.Errorf("%q, %v", b, err)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		l, _ := os.ReadDir(dir)
		for _, e := range l {
			if !yield(e.Name()) {
				return
			}
		}
	})
	if !slices.Equal(names, []string{"f", "x"}) {
		t.Error(names)
	}
}
