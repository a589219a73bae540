// SPDX-License-Identifier: Apache-2.0

package words

import "testing"

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "500M": 500e6, "2G": 2e9, "1.5 GB": 1.5e9, "3k": 3000, "7KB": 7000, "1t": 1e12, "10B": 10, "9.9 kB": 9900,
		"": 0, "M": 0, "0": 0, "-1": 0, "1x": 0, "1 2": 0, "0x10": 0, "1e3": 0, "inf": 0, "nan": 0, "1Mi": 0, "B": 0, "9999999999G": 0, "0.1": 0,
	} {
		if got, err := ParseBytes(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, n := range []int64{1, 9999, 12300, 1500000, 2200000000} {
		if got, err := ParseBytes(Bytes(n)); got != n || err != nil {
			t.Errorf("%s: %d, %v", Bytes(n), got, err)
		}
	}
}
