// SPDX-License-Identifier: Apache-2.0

package kernel

import "golang.org/x/sys/unix"

func uname() (release, machine string, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", "", err
	}
	return unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]), nil
}
