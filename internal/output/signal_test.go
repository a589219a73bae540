// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The moments of a process in which a signal ends it, by the names that at has for them.
var moments = []string{"opened", "create", "stage", "move", "remove"}

// TestEveryMoment ends a process in each moment of writing: as at a signal, temporaries are removed, and then the process ends. Meanwhile
// the goroutine that writes either stands still or goes on until it has to wait. Nothing is left behind, and files are all old or all new.
func TestEveryMoment(t *testing.T) {
	if job := os.Getenv("OUTPUT_MOMENT"); job != "" {
		endAt(job)
	}
	for _, job := range []string{"dir", "new", "file", "failing", "nameless"} {
		for _, moment := range moments {
			for _, going := range []bool{false, true} {
				for n := 0; ; n++ {
					what := fmt.Sprintf("%s %s %d %t", job, moment, n, going)
					dir := t.TempDir()
					old := map[string]string{"mine": "old"}
					if job == "dir" {
						old = map[string]string{"mine": "old", "a.btf": "old", "b/c.btf": "old", ListName: list("a.btf", "b/c.btf")}
					}
					put(t, dir, old)
					cmd := exec.Command(os.Args[0], "-test.run=^TestEveryMoment$")
					cmd.Env = append(os.Environ(), "OUTPUT_MOMENT="+what, "OUTPUT_DIR="+dir)
					out, err := cmd.CombinedOutput()
					status := cmd.ProcessState.ExitCode()
					if status == 8 { // it does not have so many of these moments
						break
					}
					if status != 7 {
						t.Fatalf("%s: %v: %s", what, err, out) // it neither ended nor waited
					}
					left, isNew := 0, false
					filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
						name, _ := filepath.Rel(dir, path)
						if strings.Contains(path, prefix) || d.IsDir() && name == "new" && !exists(filepath.Join(path, ListName)) {
							t.Errorf("%s: left behind: %s", what, name)
						}
						if data, err := os.ReadFile(path); err == nil && name != "mine" {
							left++
							isNew = isNew || string(data) == "new"
						}
						return nil
					})
					if want := len(old) - 1; !isNew && left != want {
						t.Errorf("%s: %d files, want %d", what, left, want)
					}
				}
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// endAt writes files to a directory, and ends the process in one moment. It exits with 8 if there is no such moment.
func endAt(job string) {
	f := strings.Fields(job)
	left, _ := strconv.Atoi(f[2])
	abandoned := false
	at = func(moment string) {
		switch {
		case abandoned && moment == "waits":
			os.Exit(7)
		case abandoned || moment != f[1]:
		case left > 0:
			left--
		default:
			Abandon()
			if abandoned = true; f[3] == "false" {
				os.Exit(7)
			}
		}
	}
	dir := os.Getenv("OUTPUT_DIR")
	files := []File{{"a.btf", []byte("new")}, {"b/c.btf", []byte("new")}}
	switch f[0] {
	case "dir":
		writeDir(dir, files...)
	case "new":
		writeDir(filepath.Join(dir, "new"), files...)
	case "file":
		WriteFile(filepath.Join(dir, "a.btf"), text("new"))
	case "nameless":
		if f, err := Nameless(dir); err == nil {
			f.Close()
		}
	case "failing": // a file is in the way
		writeDir(dir, append(files, File{"mine/x.btf", nil})...)
	}
	if abandoned {
		os.Exit(7)
	}
	os.Exit(8)
}
