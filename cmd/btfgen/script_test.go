// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"btfgen": func() {
			version = cmp.Or(os.Getenv("TESTVERSION"), "v0.0.0-test") // set as -ldflags -X does
			status := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
			raceflag.Report()
			os.Exit(status)
		},
		"cj": func() {
			if err := relocateAsCilium(os.Args[1:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// built builds the program once, with a version as packagers set it, and returns its path.
var built = sync.OnceValues(func() (path string, err error) {
	self, err := exec.LookPath("btfgen")
	if err != nil {
		return "", err
	}
	path = filepath.Join(filepath.Dir(self), "..", "program") // testscript removes that directory
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.version=v1.2.3-distro", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// program returns the path of the program, for tests that cannot use the test binary under the name btfgen.
func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestScript runs the scripts in testdata/script. $TESTDATA is the path of testdata, and $TESTVERSION sets the version of
// btfgen. These commands are added:
//
//	status N COMMAND...  run btfgen with the arguments and want exit status N
//	shard I/N OUT        run generate on that part of testdata's kernels
//	damage FILE AT MASK  flip bits of a byte, counted from the end if AT is negative
//	full COMMAND...      run btfgen where no file can have more than 512 bytes, and want exit status 1
func TestScript(t *testing.T) {
	td, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	dir, files := "testdata/script", []string(nil)
	var names []string
	switch {
	case raceflag.Enabled: // scripts with several workers; the others run without the detector
		names = []string{"generate", "relolog_kernels"}
	case !slow.Enabled(): // scripts of the main jobs; each starts btfgen up to 25 times
		names = []string{"archive", "archive_lookup", "check", "check_gate", "corpus_list", "errors", "generate", "init", "min_core_btf", "relolog"}
	}
	for _, name := range names {
		dir, files = "", append(files, "testdata/script/"+name+".txtar")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TESTDATA", td)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": wantStatus,
			"damage": damage,
			"shard":  shard,
			"full":   full,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil
			case "slow":
				return slow.Enabled(), nil
			case "race":
				return raceflag.Enabled, nil
			case "kernelbtf":
				_, err := os.Stat(runningKernel + "/vmlinux")
				return err == nil, nil
			}
			return false, strconv.ErrSyntax
		},
	})
}

func wantStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: status N ARGUMENTS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("btfgen", args[1:]...)
	got := 0
	if err != nil {
		if got = exitCode(err); got < 0 {
			ts.Fatalf("%v", err)
		}
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func exitCode(err error) int {
	if e, ok := err.(interface{ ExitCode() int }); ok {
		return e.ExitCode()
	}
	return -1
}

// shard accepts both statuses, because a part may have no findings.
func shard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shard I/N OUT")
	}
	td := ts.Getenv("TESTDATA")
	err := ts.Exec("btfgen", "generate", "--btf", td+"/vmlinux", "--shard", args[0], "-o", args[1], "any="+td+"/bpf/tcplife.bpfel.o", "any="+td+"/bpf/tcplife.bpfeb.o")
	if err != nil && exitCode(err) != statusFindings {
		ts.Fatalf("%v", err)
	}
}

func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: damage FILE AT MASK")
	}
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	mask, err := strconv.ParseUint(args[2], 0, 8)
	ts.Check(err)
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if at < 0 {
		at += len(data)
	}
	data[at] ^= byte(mask)
	ts.Check(os.WriteFile(path, data, 0o666))
}

func full(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: full ARGUMENTS...")
	}
	err := ts.Exec("sh", append([]string{"-c", `ulimit -f 1 && exec btfgen "$@"`, "sh"}, args...)...)
	if got := exitCode(err); err == nil || got != statusFailed {
		ts.Fatalf("exit status %d, want %d (%v)", got, statusFailed, err)
	}
}
