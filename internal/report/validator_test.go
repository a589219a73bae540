// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// module returns the path of a file of an npm module below BTFGEN_NPM, a directory
// node_modules; without that the test is skipped.
func module(t *testing.T, path string) string {
	t.Helper()
	dir := os.Getenv("BTFGEN_NPM")
	if dir == "" {
		t.Skip("needs BTFGEN_NPM, a directory with npm's modules")
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// TestSARIFMultitool has Microsoft's validator look at a report, by the schema, its
// own rules and GitHub's.
func TestSARIFMultitool(t *testing.T) {
	raceflag.SkipSerial(t)
	tool := module(t, "@microsoft/sarif-multitool-linux/Sarif.Multitool")
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("needs Linux on x86_64")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.sarif"), filepath.Join(dir, "out.sarif")
	f, err := os.Create(in)
	if err != nil {
		t.Fatal(err)
	}
	r := sample()
	r.Programs[0].Findings[0].Source = "/src/my tool/x[1].c:7"
	if err := SARIF(f, r, Options{SourceRoot: "/src", Version: "v1.2.3"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "validate", in, "--rule-kind", "Sarif;Ghas", "--level", "Error;Warning", "--output", out, "--quiet", "true")
	cmd.Env = append(os.Environ(), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "DOTNET_BUNDLE_EXTRACT_BASE_DIR="+dir)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var l struct {
		Runs []struct {
			Results     []struct{ RuleID, Level string }
			Invocations []struct{ ExecutionSuccessful bool }
		}
	}
	if err := json.Unmarshal(data, &l); err != nil || len(l.Runs) != 1 || len(l.Runs[0].Invocations) != 1 || !l.Runs[0].Invocations[0].ExecutionSuccessful {
		t.Fatalf("no result of the validator: %v\n%s", err, data)
	}
	for _, x := range l.Runs[0].Results {
		t.Errorf("%s %s\n%s", x.Level, x.RuleID, text)
	}
}
