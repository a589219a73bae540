// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/internal/limits"
)

// image reads a kernel image. Where a header says where the compressed kernel lies it is followed;
// else the image is searched, first for BTF and then for compressed data. What is unknown is treated
// so as well.
func (x *extractor) image(in *unpack.Stream) error {
	mem := x.mem.Other()
	defer mem.Release()
	img, err := mem.Read(in.Reader, in.Size, x.source.opts.MaxSize)
	if err != nil {
		return skip.Wrap(in.Path, "image", err)
	}
	switch typ := image.Sniff(img); typ {
	case image.BzImage:
		err = x.bzImage(in, img)
	case image.Zboot:
		err = x.zboot(in, img)
	case image.Arm64:
		err = x.memory(in, img, "arm64", "")
	case image.RISCV:
		err = x.memory(in, img, "riscv64", "")
	case image.ZImage:
		err = x.search(in, img, "arm")
	default:
		arch, what := "", sniff.Unrecognized(img)
		if image.IsS390(bytes.NewReader(img)) {
			arch, what = "s390x", errNoBTF
		}
		if err = x.search(in, img, arch); errors.Is(err, errNoBTF) {
			return skip.Wrap(in.Path, "", what)
		}
	}
	return skip.Wrap(in.Path, "image", err)
}

// bzImage reads the kernel in an x86 bzImage.
func (x *extractor) bzImage(in *unpack.Stream, img []byte) error {
	data, err := image.BzImagePayload(img)
	if err != nil {
		return err
	}
	return x.payload(in, data, "", image.BzImageRelease(img))
}

// zboot reads the kernel in an EFI zboot image.
func (x *extractor) zboot(in *unpack.Stream, img []byte) error {
	data, arch, err := image.ZbootPayload(img)
	if err != nil {
		return err
	}
	return x.payload(in, data, arch, "")
}

// memory finds the BTF in what will be the kernel's memory.
func (x *extractor) memory(in *unpack.Stream, img []byte, arch, release string) error {
	btf := image.FindBTF(img)
	if btf == nil {
		return errNoBTF
	}
	if release == "" {
		release = image.Release(img)
	}
	data, err := x.mem.Copy(btf)
	if err != nil {
		return err
	}
	return x.to.add(in, blob{data: data, arch: arch, rel: release, own: naming.ValidRelease(release), from: btfc.HasBTF})
}

// payload decompresses a kernel and takes its BTF. Behind the compressed data there may be four bytes
// with the size of the kernel.
func (x *extractor) payload(in *unpack.Stream, data []byte, arch, release string) error {
	k := sniff.Of(data[:min(len(data), sniff.Len)])
	switch {
	case bytes.HasPrefix(data, []byte("\x89LZO\x00")):
		return errors.New("compressed with lzo, which is not supported")
	case k == sniff.ELF || k == sniff.Unknown:
		return x.kernelImage(in, data, arch, release)
	case k != sniff.Compressed || len(data) < 4:
		return errors.New("no compressed kernel where the header says")
	}
	mem := x.mem.Other()
	defer mem.Release()
	size := int64(binary.LittleEndian.Uint32(data[len(data)-4:])) // gzip ends with it by itself
	if size <= 16*int64(len(data)) && size <= x.source.opts.MaxSize {
		if err := mem.Grow(size + 1); err != nil {
			return err
		}
	}
	f := decompress.Sniff(data)
	img, err := x.Decompress(data, f, mem)
	if err != nil {
		return skip.Wrap(in.Path, "image: "+f.String(), err)
	}
	return x.kernelImage(in, img, arch, release)
}

// kernelImage takes the BTF of an uncompressed kernel, in ELF or as memory.
func (x *extractor) kernelImage(in *unpack.Stream, img []byte, arch, release string) error {
	if sniff.Of(img[:min(len(img), sniff.Len)]) != sniff.ELF {
		switch image.Sniff(img) {
		case image.Arm64:
			arch = "arm64"
		case image.RISCV:
			arch = "riscv64"
		}
		return x.memory(in, img, arch, release)
	}
	outer := *in
	// With Image set, an ELF file without BTF is an error.
	outer.Inside, outer.Image, outer.File, outer.Rel = false, true, nil, release
	return x.elfFile(&outer, bytes.NewReader(img))
}

// search looks for BTF anywhere in an image, then in compressed data found in it: first that with a magic, then LZMA.
func (x *extractor) search(in *unpack.Stream, img []byte, arch string) error {
	if err := x.memory(in, img, arch, ""); !errors.Is(err, errNoBTF) {
		return err
	}
	mem := x.mem.Other()
	defer mem.Release()
	for _, next := range []func([]byte) (int, decompress.Format){decompress.Next, decompress.NextLZMA} {
		for at, tries := 0, 0; tries < limits.ImageTries && !x.Stopped(); tries++ {
			i, f := next(img[at:])
			if i < 0 {
				break
			}
			at += i
			if kernel, err := x.Decompress(img[at:], f, mem); err == nil && len(kernel) > 0 {
				if err := x.kernelImage(in, kernel, arch, ""); !errors.Is(err, errNoBTF) {
					return err
				}
				mem.Drop(kernel)
			}
			at++
		}
	}
	return errNoBTF
}
