// SPDX-License-Identifier: Apache-2.0

// Package words formats counts, sizes and lists for messages.
package words

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Plural returns a number of things: "1 kernel", "2 kernels".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Bytes returns a number of bytes with a decimal unit.
func Bytes(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// ParseBytes reads a number of bytes with a decimal unit, such as 500M, 2G or 1.5 GB.
func ParseBytes(text string) (int64, error) {
	number, unit := strings.TrimSuffix(strings.ToUpper(text), "B"), 1.0
	if n := len(number) - 1; n > 0 {
		if i := strings.IndexByte("KMGT", number[n]); i >= 0 {
			number, unit = number[:n], math.Pow(1000, float64(i+1))
		}
	}
	number = strings.TrimRight(number, " ")
	n, err := strconv.ParseFloat(number, 64)
	if n *= unit; err != nil || strings.Trim(number, "0123456789.") != "" || n < 1 || n >= 1<<62 {
		return 0, errors.New("want a size, such as 500M or 2G")
	}
	return int64(n), nil
}

// few is how many names are listed by default.
const few = 2

// Names lists all names, or the first few and the number of others.
func Names(names []string, all bool) string {
	if all || len(names) <= few {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], " "), len(names)-few)
}

// Kernels lists some of n kernels with Names.
func Kernels(names []string, n int, all bool) string {
	if len(names) == n && n > few && !all {
		return fmt.Sprintf("all %d kernels", n)
	}
	if n == 1 {
		return Names(names, all)
	}
	return fmt.Sprintf("%d of %d kernels: %s", len(names), n, Names(names, all))
}

// Group groups elements with equal keys, in the order of the first of each group.
func Group[T any](list []T, key func(*T) any) (groups [][]T) {
	at := make(map[any]int)
	for i := range list {
		k := key(&list[i])
		n, ok := at[k]
		if !ok {
			n = len(groups)
			at[k], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], list[i])
	}
	return groups
}
