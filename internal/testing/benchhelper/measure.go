// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// usage is the cost of all runs.
type usage struct {
	User   float64 `json:"user"`   // seconds
	Sys    float64 `json:"sys"`    // seconds
	CPU    float64 `json:"cpu"`    // seconds, of both
	Wall   float64 `json:"wall"`   // seconds, from the first start to the last end
	MaxRSS int64   `json:"maxrss"` // bytes, of the largest process
	Runs   int     `json:"runs"`
	Failed []int   `json:"failed"` // which runs, from 1, ended with neither 0 nor 3
}

// measure runs a command without output and prints its usage as JSON. With -each it runs it for each line of a file, with {} in
// the arguments replaced by the line, -jobs at a time.
func measure(args []string) error {
	fs := flag.NewFlagSet("measure", flag.ContinueOnError)
	each := fs.String("each", "", "")
	jobs := fs.Int("jobs", 1, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	lines := []string{""}
	if *each != "" {
		data, err := os.ReadFile(*each)
		if err != nil {
			return err
		}
		lines = strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	u := usage{Runs: len(lines), Failed: []int{}}
	start := time.Now()
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(max(1, *jobs))
	for i, line := range lines {
		g.Go(func() error {
			state, err := run(fs.Args(), line)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				u.add(i+1, state)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	u.Wall = time.Since(start).Seconds()
	slices.Sort(u.Failed)
	return json.NewEncoder(os.Stdout).Encode(u)
}

func run(args []string, line string) (*os.ProcessState, error) {
	if len(args) == 0 {
		return nil, errors.New("no command")
	}
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "{}", line)
	}
	cmd := exec.Command(args[0], args[1:]...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return cmd.ProcessState, nil
}

func (u *usage) add(run int, s *os.ProcessState) {
	u.User += s.UserTime().Seconds()
	u.Sys += s.SystemTime().Seconds()
	u.CPU = u.User + u.Sys
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSS = max(u.MaxRSS, int64(r.Maxrss)<<10) // Linux counts in KiB
	}
	if c := s.ExitCode(); c != 0 && c != 3 {
		u.Failed = append(u.Failed, run)
	}
}
