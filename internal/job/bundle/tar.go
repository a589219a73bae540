// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/btfgen/btfgen/internal/output"
)

// compressor returns a writer that compresses into w, single-threaded so that
// the output does not depend on timing.
func compressor(w io.Writer, format Format) (io.WriteCloser, error) {
	switch format {
	case TarGz:
		return gzip.NewWriterLevel(w, gzip.BestCompression)
	case TarXz:
		return xz.WriterConfig{DictCap: 8 << 20, CheckSum: xz.CRC64}.NewWriter(w)
	case TarZst:
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	}
	return nil, ErrFormat
}

// writeTar writes files, sorted by name, as a compressed tar. Headers carry
// neither times nor owners. A file equal to an earlier one becomes a hard link
// to it.
func writeTar(w io.Writer, format Format, files []File) error {
	c, err := compressor(w, format)
	if err != nil {
		return err
	}
	err = tarFiles(c, files)
	return cmp.Or(err, c.Close())
}

// The limits of bcc's reader, which compares the name field of a header.
const (
	bccPrefix  = "./"
	maxBCCName = 99 // bytes
)

// WriteBCC writes files to path as the min_core_btfs.tar.gz that bcc's tools
// embed. Their reader (btf_helpers.c) knows nothing but the name and size fields
// of a header: names begin with ./ and fit that field, sizes are octal, and equal
// files are there each for itself. Names are as for Write.
func WriteBCC(path string, files []File) error {
	files, err := sorted(path, files)
	if err != nil {
		return err
	}
	for _, f := range files {
		if n := len(bccPrefix) + len(f.Name); n > maxBCCName {
			return fmt.Errorf("%s: %s: name has %d bytes, bcc reads up to %d", path, f.Name, n, maxBCCName)
		}
	}
	return output.WriteFile(path, func(w io.Writer) error {
		c, err := compressor(w, TarGz)
		if err != nil {
			return err
		}
		tw := tar.NewWriter(c)
		for _, f := range files {
			h := tar.Header{Format: tar.FormatUSTAR, Typeflag: tar.TypeReg, Name: bccPrefix + f.Name, Mode: 0o644, Size: int64(len(f.Data))}
			if err := tw.WriteHeader(&h); err != nil {
				return err
			}
			if _, err := tw.Write(f.Data); err != nil {
				return err
			}
		}
		return cmp.Or(tw.Close(), c.Close())
	})
}

func tarFiles(w io.Writer, files []File) error {
	tw := tar.NewWriter(w)
	seen := make(map[[sha256.Size]byte]string)
	for _, f := range files {
		h := tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: 0o644, Size: int64(len(f.Data))}
		sum := sha256.Sum256(f.Data)
		if first, ok := seen[sum]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		} else {
			seen[sum] = f.Name
		}
		if err := tw.WriteHeader(&h); err != nil {
			return err
		}
		if h.Size > 0 {
			if _, err := tw.Write(f.Data); err != nil {
				return err
			}
		}
	}
	return tw.Close()
}
