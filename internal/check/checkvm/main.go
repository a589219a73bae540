// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command checkvm compares what check predicts with what the running kernel
// does. It is made to be the first program of a virtual machine, see
// scripts/check-kernels.sh: as process 1 it mounts what it needs, starts itself
// again as a child, and powers the machine off.
//
//	checkvm LOADER DIR   compare for every object in DIR, and print counts
//	checkvm              as process 1: the same with /load and /objects, and
//	                     then the instructions and random programs of /check.test
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/judge"
	"github.com/btfgen/btfgen/internal/corpus"
)

func main() {
	if os.Getpid() == 1 {
		boot()
	}
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: checkvm LOADER DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "checkvm:", err)
		os.Exit(1)
	}
}

// boot is process 1. It never returns.
func boot() {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"bpf", "/sys/fs/bpf"}, {"tmpfs", "/tmp"}, {"devtmpfs", "/dev"}} {
		if err := unix.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			fmt.Printf("checkvm: mount %s: %v\n", m[1], err)
		}
	}
	end := "as predicted"
	for _, args := range [][]string{
		{"/proc/self/exe", "/load", "/objects"},
		{"/check.test", "-test.v", "-test.run=^TestVerifier"},
	} {
		c := exec.Command(args[0], args[1:]...)
		c.Stdout, c.Stderr = os.Stdout, os.Stdout
		c.Env = append(os.Environ(), "BTFGEN_LIVE=1") // it is a machine for that
		if err := c.Run(); err != nil {
			end = err.Error()
		}
	}
	fmt.Printf("checkvm: end: %s\n", end)
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("checkvm: power off:", err)
	}
	select {}
}

func run(loader, dir string) error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err
	}
	fmt.Printf("checkvm: kernel %s\n", unix.ByteSliceToString(u.Release[:]))
	ctx := context.Background()
	corp, err := corpus.Open(ctx, []string{"/sys/kernel/btf"}, corpus.Options{})
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.o"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: no objects", dir)
	}
	counts, wrong := make(map[string]int), 0
	var table judge.Table
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		o, err := check.Parse(context.Background(), filepath.Base(f), data)
		if err != nil {
			return err
		}
		rep, err := check.Run(ctx, check.Config{Objects: []*check.Object{o}, Corpus: corp, Jobs: 1})
		if err != nil {
			return err
		}
		if rep.Programs[0].Status[0] == check.Other {
			continue
		}
		outcomes, err := judge.Load(loader, f)
		if err != nil {
			return err
		}
		for i := range outcomes {
			p := slices.IndexFunc(rep.Programs, func(p check.Program) bool { return p.Name == outcomes[i].Program })
			if p < 0 {
				counts["not opened by libbpf"]++
				continue
			}
			c := judge.Compare(&rep.Programs[p], 0, &outcomes[i])
			table.Add(&c, &outcomes[i])
			counts[fmt.Sprintf("predicted %s, %s", c.Predicted, c.Happened)]++
			if why := outcomes[i].Reason(); c.Happened == "fails for another reason" {
				counts["  for another reason: "+why]++
			}
			if c.Wrong != "" {
				wrong++
				fmt.Printf("checkvm: WRONG %s\n", c.Wrong)
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("checkvm: %4d %s\n", counts[n], n)
	}
	for _, l := range table.Lines() {
		fmt.Println("checkvm:", l)
	}
	if wrong > 0 {
		return fmt.Errorf("%d predictions were wrong", wrong)
	}
	return nil
}
