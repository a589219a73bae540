// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

// Timeout is the time after which [Run] ends bpftool. The longest known run takes 10
// seconds.
const Timeout = 2 * time.Minute

// Run minimizes the BTF in the file input for objects with bpftool. It removes output
// first. A failure of bpftool is part of the result; the error says that bpftool could
// not be run or did not end. Runs with different outputs may be concurrent.
//
// The log does not separate objects: their records follow one another.
func Run(ctx context.Context, bpftool, input, output string, objects ...string) (*Result, error) {
	res, _, err := run(ctx, bpftool, input, output, objects...)
	return res, err
}

// run also returns the log.
func run(ctx context.Context, bpftool, input, output string, objects ...string) (*Result, string, error) {
	if err := os.Remove(output); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, bpftool, append([]string{"-d", "gen", "min_core_btf", input, output}, objects...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.WaitDelay = time.Second

	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, "", fmt.Errorf("%s: %w", bpftool, ctx.Err())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, "", err
	}
	res := Parse(log.String())
	res.ExitStatus = cmd.ProcessState.ExitCode()
	if err != nil && res.Failure == "" {
		res.Failure = err.Error()
	}
	if st, err := os.Stat(output); err == nil && st.Size() > 0 {
		res.Written = true
	}
	return res, log.String(), nil
}
