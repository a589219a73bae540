// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kernel

import "errors"

func uname() (release, machine string, err error) {
	return "", "", errors.New("not Linux: release and arch must be given")
}
