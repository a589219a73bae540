// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"cmp"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// bcc's tools embed min_core_btfs.tar.gz. Their reader (btf_helpers.c) uses only the name and size fields of a header: names begin
// with ./ and fit into the field, sizes are octal, and there are no links.
const (
	bccPrefix  = "./"
	maxBCCName = 99 // bytes
)

// writeTar writes files, sorted by name, as a compressed tar. Headers have no times or owners. Equal files are stored
// in full, because install scripts extract single members.
func (o *Output) writeTar(w io.Writer, files []File) error {
	c, err := compressor(w, o.Format)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(c)
	for _, f := range files {
		h := tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: 0o644, Size: int64(len(f.Data))}
		if o.tools() {
			h.Format, h.Name = tar.FormatUSTAR, bccPrefix+f.Name
		}
		if err := tw.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := tw.Write(f.Data); err != nil {
			return err
		}
	}
	return cmp.Or(tw.Close(), c.Close())
}

// compressor returns a single-threaded compressor, whose output does not depend on timing.
func compressor(w io.Writer, format Format) (io.WriteCloser, error) {
	switch format {
	case TarGz:
		return gzip.NewWriterLevel(w, gzip.BestCompression)
	case TarXz:
		return xz.WriterConfig{DictCap: 8 << 20, CheckSum: xz.CRC64}.NewWriter(w)
	}
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
}
