// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// TestRegular checks that a tar has equal files in full, so that tar can extract any of them alone.
func TestRegular(t *testing.T) {
	same := []byte("the same content")
	var b bytes.Buffer
	o := &Output{Format: TarGz}
	if err := o.writeTar(&b, []File{{Name: "a.btf", Data: same}, {Name: "b.btf", Data: same}}); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for _, name := range []string{"a.btf", "b.btf"} {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if h.Name != name || h.Typeflag != tar.TypeReg || !bytes.Equal(data, same) || err != nil {
			t.Errorf("%s: type %c, %q, %v", h.Name, h.Typeflag, data, err)
		}
	}
}
