// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
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

// TestWriteFile checks that a file is replaced only when the new one is complete.
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
	if err := WriteFile(os.DevNull, text("new")); err != nil {
		t.Error(err)
	}
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

// writeDir is WriteDir without a context and without made.
func writeDir(dir string, files ...File) (Result, error) {
	return WriteDir(context.Background(), dir, files, nil)
}

// list returns the JSON list of a directory.
func list(names ...string) string {
	return string((&List{Files: names}).encode())
}

// TestWriteDir checks that a directory gets all files or none.
func TestWriteDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	files := []File{{"d/1.btf", []byte("one")}, {"d/e/2.btf", []byte("two")}, {"3.btf", []byte("three")}}
	for range 2 {
		if res, err := writeDir(dir, files...); err != nil || res.Removed != 0 {
			t.Fatal(res, err)
		}
		same(t, dir, map[string]string{"d/1.btf": "one", "d/e/2.btf": "two", "3.btf": "three", ListName: list("3.btf", "d/1.btf", "d/e/2.btf")})
	}
	put(t, dir, map[string]string{"other": "mine", "d/mine.btf": "mine", "d/e/mine": "mine"})
	res, err := writeDir(dir, File{"3.btf", []byte("drei")}, File{"f/g/4.btf", []byte("vier")})
	if want := (Result{Size: 8, Removed: 2}); err != nil || res != want {
		t.Fatal(res, err)
	}
	now := map[string]string{
		"3.btf": "drei", "f/g/4.btf": "vier", "other": "mine", "d/mine.btf": "mine", "d/e/mine": "mine", ListName: list("3.btf", "f/g/4.btf"),
	}
	same(t, dir, now)
	put(t, dir, map[string]string{"d.btf/x": ""})
	now["d.btf/x"] = ""
	for want, file := range map[string]string{
		filepath.Join(dir, "d.btf") + ": is a directory":                              "d.btf",
		filepath.Join(dir, "other/a/b.btf") + ": not a directory":                     "other/a/b.btf",
		filepath.Join(dir, "3.btf/a.btf") + ": not a directory":                       "3.btf/a.btf",
		filepath.Join(dir, "d/mine.btf") + ": is in the way: btfgen did not write it": "d/mine.btf",
		dir + `: "../x.btf": not the name of a file with BTF in the directory`:        "../x.btf",
		dir + `: ".git/x.btf": not the name of a file with BTF in the directory`:      ".git/x.btf",
		dir + `: "d/x": not the name of a file with BTF in the directory`:             "d/x",
	} {
		if _, err := writeDir(dir, File{"1st.btf", nil}, File{"new/2nd.btf", nil}, File{file, nil}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		same(t, dir, now)
	}
	if _, err := writeDir(filepath.Join(dir, "3.btf"), files...); err == nil || !strings.HasSuffix(err.Error(), "3.btf: not a directory") {
		t.Error(err)
	}
	if _, err := writeDir(filepath.Join(dir, "fresh"), File{"a.btf", nil}, File{"a.btf/b.btf", nil}); err == nil {
		t.Error("a file that is a directory")
	}
	same(t, dir, now)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := WriteDir(ctx, dir, files, nil); err != context.Canceled {
		t.Error(err)
	}
	same(t, dir, now)
}

// TestForeign writes to directories with BTF but no list, and with invalid lists. Nothing must change.
func TestForeign(t *testing.T) {
	for _, name := range []string{"x.btf", "debian/12/x86_64/6.1.btf.zst", "a/b.btf.tar.xz"} {
		dir := t.TempDir()
		before := map[string]string{name: "theirs", "README": "theirs"}
		put(t, dir, before)
		for _, err := range []error{CheckDir(context.Background(), dir), func() error { _, err := writeDir(dir, File{"new.btf", nil}); return err }()} {
			if err == nil || !strings.HasPrefix(err.Error(), dir+": holds BTF that btfgen did not write as one tree: "+name+": ") {
				t.Errorf("%s: %v", name, err)
			}
		}
		same(t, dir, before)
	}
	dir := t.TempDir()
	before := map[string]string{"README": "theirs", ".git/x.btf": "theirs", ".x.btf": "theirs", "x.btfx": "theirs"}
	put(t, dir, before)
	if res, err := writeDir(dir, File{"new.btf", nil}); err != nil || res.Removed != 0 {
		t.Error(res, err)
	}
	before["new.btf"], before[ListName] = "", list("new.btf")
	same(t, dir, before)

	for text, want := range map[string]string{
		``:                                 "not a list of files: unexpected end of JSON input",
		`[]`:                               "not a list of files: ",
		`{"files": ["/etc/x.btf"]}`:        "files, number 1: not the name of a file",
		`{"files": ["a.btf", "../x.btf"]}`: "files, number 2: not the name of a file",
		`{"files": ["a%2.btf"]}`:           "files, number 1: not the name of a file",
		`{"files": ["%2e%2e/x.btf"]}`:      "files, number 1: not the name of a file",
		`{"files": ["README"]}`:            "files, number 1: not the name of a file",
		`{"files": [".git/x.btf"]}`:        "files, number 1: not the name of a file",
		`{"files": ["a/.x.btf"]}`:          "files, number 1: not the name of a file",
		`{"files": ["a//x.btf"]}`:          "files, number 1: not the name of a file",
		`{"files": 1}`:                     "not a list of files: ",
		`{"files": []} x`:                  "not a list of files: ",
	} {
		before[ListName] = text
		put(t, dir, before)
		if _, err := writeDir(dir, File{"new.btf", nil}); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, ListName)+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		same(t, dir, before)
	}
}

// TestNames writes and lists names with unusual bytes.
func TestNames(t *testing.T) {
	names := []string{"%25.btf", "\xff\ufffd%/é<.btf", "é .btf"}
	dir := t.TempDir()
	for _, name := range names {
		if _, err := writeDir(dir, File{name, nil}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if l, err := ReadList(context.Background(), dir); err != nil || !slices.Equal(l.Files, []string{name}) {
			t.Errorf("%q: %v, %v", name, l, err)
		}
	}
	same(t, dir, map[string]string{names[2]: "", ListName: "{\n \"files\": [\n  \"é .btf\"\n ]\n}\n"})
}

// TestRemovedInside checks that nothing outside the directory is removed through links.
func TestRemovedInside(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	put(t, elsewhere, map[string]string{"x.btf": "theirs"})
	put(t, dir, map[string]string{ListName: list("gone.btf", "out/x.btf", "link.btf")})
	if err := errors.Join(os.Symlink(elsewhere, filepath.Join(dir, "out")), os.Symlink(filepath.Join(elsewhere, "x.btf"), filepath.Join(dir, "link.btf"))); err != nil {
		t.Fatal(err)
	}
	if _, err := writeDir(dir, File{"new.btf", nil}); err != nil {
		t.Error(err)
	}
	same(t, elsewhere, map[string]string{"x.btf": "theirs"})
	if _, err := os.Lstat(filepath.Join(dir, "link.btf")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestIncomplete replaces what a killed run has left. Until then, readers refuse the directory.
func TestIncomplete(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"a.btf": "new", "d/b.btf": "old", "gone.btf": "old", "e/c.btf": "new", "mine.btf": "mine", ".btfgen.8.tmp/d/b.btf": "new",
		ListName: string((&List{Files: []string{"a.btf", "d/b.btf", "e/c.btf", "gone.btf", "late.btf"}, Incomplete: true}).encode()),
	})
	want := filepath.Join(dir, ListName) + ": the run that wrote this directory was interrupted; run it again"
	if l, err := ReadList(context.Background(), dir); err == nil || err.Error() != want {
		t.Errorf("%v, %v, want %s", l, err, want)
	}
	if res, err := writeDir(dir, File{"d/b.btf", []byte("newest")}); err != nil || res.Removed != 3 {
		t.Fatal(res, err)
	}
	same(t, dir, map[string]string{"d/b.btf": "newest", "mine.btf": "mine", ListName: list("d/b.btf")})
}

// TestClean checks that clean keeps temporaries of running processes, and other files.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	d, err1 := create(dir, fs.ModeDir|0o777)
	f, err2 := create(dir, 0o666)
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
	f.file.Close() // as at the end of a process
	clean(dir)
	same(t, dir, others)
}

// TestTogether writes from several goroutines.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{".btfgen.1.tmp": "left"})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 25 {
				name := fmt.Sprint(n)
				d, err := OpenDir(dir)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = writeDir(filepath.Join(dir, "unit"+name), File{"d/x.btf", []byte(name)}, File{"e/x.btf", []byte(name)})
				err = errors.Join(err,
					WriteFile(filepath.Join(dir, name), text(name)),
					d.Put("g/"+name+"/f", text(name)), d.Close(),
				)
				if err != nil {
					t.Errorf("%d, %d: %v", n, i, err)
				}
			}
		})
	}
	wg.Wait()
	want := make(map[string]string)
	for n := range 8 {
		name := fmt.Sprint(n)
		for _, p := range []string{name, "unit" + name + "/d/x.btf", "unit" + name + "/e/x.btf", "g/" + name + "/f"} {
			want[p] = name
		}
		want["unit"+name+"/"+ListName] = list("d/x.btf", "e/x.btf")
	}
	same(t, dir, want)
}

// TestReplaced checks that files keep their mode, and that WriteFile keeps links, also to another file system.
func TestReplaced(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "output"); err == nil {
		defer os.RemoveAll(shm)
		elsewhere = shm
	}
	target, link := filepath.Join(elsewhere, "x.btf"), filepath.Join(dir, "x.btf")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for _, old := range []bool{false, true} {
		os.Remove(target)
		if old {
			put(t, elsewhere, map[string]string{"x.btf": "0"})
			if err := os.Chmod(target, 0o604); err != nil {
				t.Fatal(err)
			}
		}
		if err := WriteFile(link, text("1")); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(link); to != target {
			t.Error(to, err)
		}
		same(t, elsewhere, map[string]string{"x.btf": "1"})
		if fi, err := os.Stat(target); err != nil || old && fi.Mode() != 0o604 {
			t.Error(fi.Mode(), err)
		}
	}
}

// TestReplacedInside checks that in a directory files keep their mode, that links inside it are replaced, and that those which lead
// out of it are refused.
func TestReplacedInside(t *testing.T) {
	for _, write := range []func(dir string) error{
		func(dir string) error { _, err := writeDir(dir, File{"x.btf", []byte("1")}); return err },
		func(dir string) error {
			d, err := OpenDir(dir)
			return errors.Join(err, d.Put("x.btf", text("1")), d.Close())
		},
	} {
		dir, elsewhere := t.TempDir(), t.TempDir()
		put(t, dir, map[string]string{ListName: list("x.btf"), ".hidden/x.btf": "0"})
		at := filepath.Join(dir, "x.btf")
		for _, to := range []string{filepath.Join(elsewhere, "x.btf"), ".hidden/x.btf"} {
			os.Remove(at)
			if err := errors.Join(os.Symlink(to, at), os.Chmod(filepath.Join(dir, ".hidden/x.btf"), 0o604)); err != nil {
				t.Fatal(err)
			}
			if err := write(dir); filepath.IsAbs(to) != (err != nil) || err != nil && err.Error() != at+": path escapes from parent" {
				t.Errorf("%s: %v", to, err)
			}
		}
		same(t, elsewhere, map[string]string{})
		same(t, dir, map[string]string{"x.btf": "1", ".hidden/x.btf": "0", ListName: list("x.btf")})
		if fi, err := os.Lstat(at); err != nil || fi.Mode() != 0o604 {
			t.Error(fi.Mode(), err)
		}
	}
}

// TestMovedInside replaces a directory of the output by a link that leads out of it, between the check of a file's place and the move.
func TestMovedInside(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	put(t, dir, map[string]string{"d/x.btf": "0"})
	put(t, elsewhere, map[string]string{"x.btf": "theirs"})
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Put("d/x.btf", func(w io.Writer) error {
		sub := filepath.Join(dir, "d")
		return errors.Join(os.Rename(sub, filepath.Join(dir, "old")), os.Symlink(elsewhere, sub), text("1")(w))
	})
	if want := filepath.Join(dir, "d/x.btf") + ": path escapes from parent"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	same(t, elsewhere, map[string]string{"x.btf": "theirs"})
	os.Remove(filepath.Join(dir, "d"))
	same(t, dir, map[string]string{"old/x.btf": "0"})
}

// TestLinkedDir writes to a directory by a link: the link stays, and the directory and its files keep their modes.
func TestLinkedDir(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	put(t, real, map[string]string{"x.btf": "0", ListName: list("x.btf")})
	if err := errors.Join(os.Symlink("real", link), os.Chmod(real, 0o705), os.Chmod(filepath.Join(real, "x.btf"), 0o604)); err != nil {
		t.Fatal(err)
	}
	if _, err := writeDir(link, File{"x.btf", []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); to != "real" {
		t.Error(to, err)
	}
	same(t, real, map[string]string{"x.btf": "1", ListName: list("x.btf")})
	for name, want := range map[string]fs.FileMode{"real": fs.ModeDir | 0o705, "real/x.btf": 0o604} {
		if fi, err := os.Lstat(filepath.Join(dir, name)); err != nil || fi.Mode() != want {
			t.Errorf("%s: %v, want %v", name, fi.Mode(), want)
		}
	}
}

// TestInside checks which paths stay in a folder.
func TestInside(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"in/d/x": "", "out/x": "", "in/.git/hooks/x": "", "in/bare/HEAD": "", "in/bare/objects/x": "", "in/bare/refs/x": ""})
	links := map[string]string{
		"up": "../out", "d/up": "../../out/new", "x": "../out/x", "own": "d", "new": "d/new", "abs": dir + "/out", "loop": "loop", "two": "up",
		"g": ".git", "d/hooks": "../.git/hooks", "c": ".git/config", "h": "g/hooks", "later": "d/new/../../.git", "missing": "d/.hg", "b": "bare",
	}
	for link, to := range links {
		if err := os.Symlink(to, filepath.Join(dir, "in", link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	const out = "is outside the folder"
	for path, want := range map[string]string{
		"y": "", "d/x": "", "d/x/y": "", "new": "", "own/y": "", "n/e/w/": "", ".": "", "-": "", dir + "/in/y": "", "./y": "", "new/y": "", "..y": "",
		".gitignore": "", ".github/x": "", "git": "", "d.git": "", "..git": "", "git~": "", "git~x": "", "refs/x": "",
		"../y": out, "up": out, "up/y": out, "d/up": out, "d/up/y/z": out, "x": out, "abs": out, "abs/y": out, "loop": out, "two/y": out,
		"own/../y": out, "d/../y": out, dir: out, dir + "/out/y": out, dir + "/in/../out": out, dir + "/in/up/y": out, "": out, "a\x00b": out,
		// Data of version control systems, also through links, and where they do not exist yet.
		".git": "is in .git", ".git/config": "is in .git", "g/hooks/x": "is in .git", "g": "is in .git", "d/hooks": "is in .git", "own/hooks/y": "is in .git",
		"c": "is in .git", "h/x": "is in .git", "missing/x": "is in .hg", "d/.svn/x": "is in .svn", ".jj/x": "is in .jj", ".bzr": "is in .bzr",
		dir + "/in/g/x": "is in .git", "bare/hooks/x": "is in bare, which has data of git", "b/x": "is in bare, which has data of git",
		// Other spellings of .git on Windows and macOS.
		".GIT/x": "is in .GIT", "git~1/x": "is in git~1", "GIT~12/x": "is in GIT~12", ".git /x": "is in .git ", ".git.../x": "is in .git...", ".git. ./x": "is in .git. .",
		".git::$INDEX_ALLOCATION/x": "is in .git::$INDEX_ALLOCATION", ".git:x": "is in .git:x", ".g\u200cit/x": "is in .g\u200cit", "\ufeff.git/x": "is in \ufeff.git",
		".\u206agit": "is in .\u206agit", ".g\u0131t~/x": "", "hg~1": "is in hg~1", ".\u017fvn/x": "is in .\u017fvn",
	} {
		for _, folder := range []string{"in", dir + "/in", "./in/"} {
			got := ""
			if err := Inside(folder, path); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%q in %s: %q, want %q", path, folder, got, want)
			}
		}
	}
}

// TestMetadata writes to a directory in which links lead to data of git: it does not change, as nothing outside the directory does.
func TestMetadata(t *testing.T) {
	dir := t.TempDir()
	git := map[string]string{"refs/heads/x.btf": "theirs", "config": "theirs"}
	put(t, filepath.Join(dir, ".git"), git)
	put(t, dir, map[string]string{ListName: list("g/refs/heads/x.btf")})
	if err := os.Symlink(".git", filepath.Join(dir, "g")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"g/refs/heads/x.btf", "g/hooks/x.btf"} {
		want := filepath.Join(dir, filepath.FromSlash(name)) + ": is in .git"
		if _, err := writeDir(dir, File{name, nil}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		d, err := OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Put(name, text("")); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		d.Close()
	}
	if _, err := writeDir(dir, File{"new.btf", nil}); err != nil { // and removes what the list has
		t.Error(err)
	}
	same(t, filepath.Join(dir, ".git"), git)
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

// TestAbandon ends a process while it writes.
func TestAbandon(t *testing.T) {
	if dir := os.Getenv("OUTPUT_ABANDON"); dir != "" {
		d, _ := OpenDir(dir)
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

// TestDevice writes to files that cannot be replaced.
func TestDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full: ", err)
	}
	if err := WriteFile("/dev/null", text("x")); err != nil {
		t.Error(err)
	}
	if err := WriteFile("/dev/full", text("x")); err == nil || err.Error() != "/dev/full: no space left on device" {
		t.Error(err)
	}
	dir := t.TempDir()
	put(t, dir, map[string]string{ListName: list("x.btf")})
	if err := os.Symlink("/dev/null", filepath.Join(dir, "x.btf")); err != nil {
		t.Fatal(err)
	}
	if _, err := writeDir(dir, File{"a.btf", nil}, File{"x.btf", nil}); err == nil || !strings.HasSuffix(err.Error(), "x.btf: path escapes from parent") {
		t.Error(err)
	}
	if l, _ := os.ReadDir(dir); len(l) != 2 {
		t.Error(l)
	}
	// /dev/fd is a name for an open file.
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
	if !slices.Equal(names, []string{ListName, "f", "x.btf"}) {
		t.Error(names)
	}
}
