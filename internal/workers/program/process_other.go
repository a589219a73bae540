// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package program

import (
	"os/exec"
	"syscall"
)

func apart(*exec.Cmd, syscall.Signal) {}

func limit(int, uint64, uint64) {}
