// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// The kernel's build compresses with these programs, adds the size for all but gzip, and has a
// kernel of several megabytes: frames, blocks and filters are other than in small samples.
func TestImagePrograms(t *testing.T) {
	slow.Skip(t)
	_, got, errs := readAll(t, Options{}, filepath.Join(testdata, "debian/12/x86_64"))
	if len(got) == 0 {
		t.Fatal(errs)
	}
	btf := got[0].btf
	// Together more than 8 MB, a block of lz4's legacy format.
	filler := bytes.Repeat([]byte("a kernel has code too. "), 5<<20/23)
	if raceflag.Enabled || !slow.Enabled() {
		btf, filler = btfBlob(binary.LittleEndian, strings.Repeat("long", 100), false), filler[:1<<20]
	}
	kernel := elfFile(binary.LittleEndian, elf.ET_EXEC, elf.EM_X86_64, section{".text", 0, filler}, section{".BTF", 0, btf})
	memory := append(filler, arm64Image(btf)...)
	copy(memory[0x38:], "ARM\x64")
	for _, args := range []string{
		"gzip -n -1", "xz --check=crc32 --x86 --lzma2=preset=0,dict=32MiB", "xz --check=crc32 --arm --lzma2=preset=0", "lzma -0", "xz --format=lzma -1", "lz4 -l -1", "zstd -3",
		"zstd -22 --ultra --single-thread --zstd=strategy=1,wlog=27", "bzip2 -1",
	} {
		program := strings.Fields(args)[0]
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("skipped: no %s program", program)
			continue
		}
		compress := func(data []byte) []byte {
			cmd := exec.Command(program, strings.Fields(args)[1:]...)
			cmd.Stdin = bytes.NewReader(data)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", args, err)
			}
			if program != "gzip" {
				out = binary.LittleEndian.AppendUint32(out, uint32(len(data)))
			}
			return out
		}
		inELF, inMemory := compress(kernel), compress(memory)
		images := map[string][]byte{
			"bzImage": bzImage(inELF), "zboot": zboot(inMemory), "s390": s390Image(inMemory), "uImage": uImage(inMemory), "boot.img": bootImage(inELF),
		}
		for name, img := range images {
			path := filepath.Join(t.TempDir(), "image")
			if err := os.WriteFile(path, img, 0o644); err != nil {
				t.Fatal(err)
			}
			_, got, errs := readAll(t, Options{}, path)
			if len(errs) > 0 || len(got) != 1 || !bytes.Equal(got[0].btf, btf) {
				t.Errorf("%s in %s: %d kernels, %v", args, name, len(got), errs)
			}
		}
	}
}

// uImage returns an image of U-Boot: a header of 64 bytes, and the kernel.
func uImage(kernel []byte) []byte {
	return append(append([]byte("\x27\x05\x19\x56"), noise(60)...), kernel...)
}

// bootImage returns an image of Android: a page with a header, the kernel and a ramdisk.
func bootImage(kernel []byte) []byte {
	page := append([]byte("ANDROID!"), make([]byte, 4088)...)
	return join(page, kernel, make([]byte, 4096), noise(1000))
}

// TestImageLZMA searches images for LZMA, which has no magic. What only looks like its header costs little.
func TestImageLZMA(t *testing.T) {
	kernel := elfFile(binary.LittleEndian, elf.ET_EXEC, elf.EM_X86_64, section{".text", 0, noise(50_000)}, section{".BTF", 0, blobLE})
	memory := append(noise(20_000), blobLE...)
	looksLike := []byte("\x5d\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00")
	for name, img := range map[string][]byte{
		"uImage":          uImage(compress("lzma", memory)),
		"boot.img":        bootImage(compress("lzma", kernel)),
		"s390":            s390Image(compress("lzma", memory)),
		"behind others":   join(noise(100), bytes.Repeat(join(looksLike, noise(50)), 30), compress("lzma", memory), noise(100)),
		"gzip behind it":  join(noise(100), bytes.Repeat(looksLike, 1000), compress("gz", memory)),
		"zeros behind it": join(noise(100), looksLike, make([]byte, 100), compress("lzma", memory)),
	} {
		path := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(path, img, 0o644); err != nil {
			t.Fatal(err)
		}
		_, got, errs := readAll(t, Options{}, path)
		if len(errs) > 0 || len(got) != 1 || !bytes.Equal(got[0].btf, blobLE) {
			t.Errorf("%s: %d kernels, %v", name, len(got), errs)
		}
	}
}

// The largest plausible BTF of an image counts; kernels embed that of small BPF programs.
func TestScanBTF(t *testing.T) {
	big := btfBlob(binary.LittleEndian, strings.Repeat("long", 100), false)
	for _, tt := range []struct {
		name string
		img  []byte
		want []byte
	}{
		{"nothing", noise(10000), nil},
		{"empty", nil, nil},
		{"one", join(noise(10), blobLE, noise(10)), blobLE},
		{"small first", join(noise(10), blobLE, noise(9), big, noise(3)), big},
		{"small last", join(big, blobBE), big},
		{"split is no vmlinux", join(noise(10), splitLE), nil},
		{"cut off", blobLE[:len(blobLE)-1], nil},
		{"magic alone", []byte("\x9f\xeb\x01"), nil},
		{"magics before it", join([]byte("\x9f\xeb\x01\x9f\xeb\x01\x00"), blobBE), blobBE},
		{"long header", join([]byte{1}, longHeader(), noise(5)), longHeader()},
	} {
		if got := image.FindBTF(tt.img); !bytes.Equal(got, tt.want) {
			t.Errorf("%s: got %d bytes, want %d", tt.name, len(got), len(tt.want))
		}
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// longHeader returns blobLE with a header of 32 bytes and a layout section behind the strings.
func longHeader() []byte {
	b := join(blobLE[:24], make([]byte, 8), blobLE[24:], []byte("\x00\x00\x00layout.."))
	le := binary.LittleEndian
	le.PutUint32(b[4:], 32)
	le.PutUint32(b[24:], uint32(len(b)-32-8))
	le.PutUint32(b[28:], 8)
	return b
}
