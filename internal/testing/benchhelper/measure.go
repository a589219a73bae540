// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// usage is the cost of one measurement: of one process, or of several together.
type usage struct {
	CPU    float64 `json:"cpu"`    // seconds
	Wall   float64 `json:"wall"`   // seconds, from the first start to the last end
	MaxRSS int64   `json:"maxrss"` // bytes, of the largest process
	Runs   int     `json:"runs"`
	Failed int     `json:"failed"` // how many ended with neither 0 nor 3
}

// sides are the measurements of one thing: of today's program or of another one, and of the earlier version.
type sides struct {
	Now    []usage `json:"now"`
	Before []usage `json:"before,omitempty"`
}

// measured has what a plan measured, by name.
type measured map[string]*sides

func (m measured) side(name string) *sides {
	if m[name] == nil {
		m[name] = new(sides)
	}
	return m[name]
}

// measure runs commands without output, several at once, and appends their cost to a list.
func measure(list *[]usage, commands [][]string, jobs int) error {
	u := usage{Runs: len(commands)}
	start := time.Now()
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(max(1, jobs))
	for _, command := range commands {
		g.Go(func() error {
			cmd := exec.Command(command[0], command[1:]...)
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			u.add(cmd.ProcessState)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	u.Wall = time.Since(start).Seconds()
	*list = append(*list, u)
	return nil
}

func (u *usage) add(s *os.ProcessState) {
	u.CPU += (s.UserTime() + s.SystemTime()).Seconds()
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.MaxRSS = max(u.MaxRSS, int64(r.Maxrss)<<10) // Linux counts in KiB
	}
	if c := s.ExitCode(); c != 0 && c != 3 {
		u.Failed++
	}
}

func cpu(u usage) float64    { return u.CPU }
func wall(u usage) float64   { return u.Wall }
func memory(u usage) float64 { return float64(u.MaxRSS) }

// sorted returns one quantity of all measurements in ascending order.
func sorted(list []usage, of func(usage) float64) []float64 {
	var v []float64
	for _, u := range list {
		v = append(v, of(u))
	}
	slices.Sort(v)
	return v
}

// median returns the lower median.
func median(list []usage, of func(usage) float64) float64 {
	v := sorted(list, of)
	return v[(len(v)-1)/2]
}
