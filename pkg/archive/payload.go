package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A file is a header (magic and version) and one zstd frame. The frame holds
// the number of streams, their lengths, and the streams.
const magic = "btfa"

// Version is the version of the format that this package reads and writes.
const Version = 1

// The streams. Each holds one sort of thing, because like compresses well next
// to like.
const (
	streamMeta    = iota // who made this of what
	streamKernels        // keys and their layouts
	streamNames          // of slots, then of members and enumerators
	streamShapes         // types without numbers
	streamParents        // which variant a variant is like
	streamNumbers        // offsets, sizes, values
	streamLayouts        // which variants make up a layout
	numStreams
)

var streamTexts = [numStreams]string{"meta", "kernels", "names", "shapes", "parents", "numbers", "layouts"}

// maxPayload limits the decompressed bytes of an archive. 5,000 real kernels
// need about a tenth of it.
const maxPayload = 8 << 20

// maxStreams limits how many streams a later writer may have added.
const maxStreams = 64

// Errors of opening an archive. Others are possible: they describe what is
// wrong with the data.
var (
	// ErrNotArchive says that the data does not begin as an archive does.
	ErrNotArchive = errors.New("not a btfgen archive")
	// ErrVersion says that the archive has a format version that this package
	// does not know.
	ErrVersion = errors.New("unknown version of the archive format")
)

// Is reports whether data begins as an archive does, of whatever version.
func Is(data []byte) bool { return len(data) >= len(magic) && string(data[:len(magic)]) == magic }

// head returns what stands before the streams in a payload.
func head(streams *[numStreams][]byte) []byte {
	b := binary.AppendUvarint(nil, numStreams)
	for _, s := range streams {
		b = binary.AppendUvarint(b, uint64(len(s)))
	}
	return b
}

// fewBytes is the size of payloads, in bytes, up to which one block for all
// streams can be smaller than one for each. It never was from 2 kB on.
const fewBytes = 4 << 10

// pack makes a file of streams.
func pack(streams *[numStreams][]byte) ([]byte, error) {
	head := head(streams)
	size := len(head)
	for _, s := range streams {
		size += len(s)
	}
	if size > maxPayload {
		return nil, fmt.Errorf("%d bytes before compression, more than %d", size, maxPayload)
	}
	w, err := newEncoder(size)
	if err != nil {
		return nil, err
	}
	var best []byte
	for _, blocks := range []bool{true, false} {
		if !blocks && size > fewBytes {
			break
		}
		b, err := compress(w, head, streams, size, blocks)
		if err != nil {
			return nil, err
		}
		if best == nil || len(b) < len(best) {
			best = b
		}
	}
	return best, nil
}

// newEncoder returns an encoder for payloads of size bytes. Its tables take some 40 MB.
func newEncoder(size int) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true),
		zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window(size)))
}

// compress writes header and frame. With blocks, each stream begins a zstd
// block of its own, which has its own entropy tables: good for long streams.
func compress(w *zstd.Encoder, head []byte, streams *[numStreams][]byte, size int, blocks bool) ([]byte, error) {
	out := bytes.NewBufferString(magic)
	out.WriteByte(Version)
	var err error
	w.ResetContentSize(out, int64(size))
	write := func(b []byte) {
		if err == nil {
			_, err = w.Write(b)
		}
	}
	write(head)
	for _, s := range streams {
		if blocks && len(s) > 0 && err == nil {
			err = w.Flush()
		}
		write(s)
	}
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// StreamSize is what one part of an archive takes.
type StreamSize struct {
	Name   string // as docs/archive-format.md calls it
	Plain  int    // bytes before compression
	Packed int    // bytes when compressed alone, which is about its share
}

// StreamSizes tells what the bytes of an archive are spent on.
func StreamSizes(data []byte) ([]StreamSize, error) {
	payload, err := unpack(data)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	streams, err := split(payload)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	w, err := newEncoder(len(payload))
	if err != nil {
		return nil, err
	}
	var sizes []StreamSize
	for i, s := range streams {
		var one [numStreams][]byte
		one[0] = s.b
		b, err := compress(w, nil, &one, len(s.b), false)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, StreamSize{streamTexts[i], len(s.b), len(b)})
	}
	return sizes, nil
}

// window returns the smallest zstd window that holds size bytes.
func window(size int) int {
	return max(zstd.MinWindowSize, 1<<bits.Len(uint(max(size, 1)-1)))
}

// decoder decompresses for all archives.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxPayload), zstd.WithDecoderMaxWindow(maxPayload))
})

// unpack returns the payload of a file.
func unpack(data []byte) ([]byte, error) {
	if !Is(data) {
		return nil, ErrNotArchive
	}
	if len(data) == len(magic) {
		return nil, errCut
	}
	if v := data[len(magic)]; v != Version {
		return nil, fmt.Errorf("%w: %d, want %d", ErrVersion, v, Version)
	}
	frame := data[len(magic)+1:]
	size, err := checkFrame(frame)
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	payload, err := d.DecodeAll(frame, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	return payload, nil
}

// split cuts a payload into its streams. Streams beyond those known are left
// to later readers.
func split(payload []byte) (streams [numStreams]cursor, err error) {
	c := cursor{b: payload}
	n := c.uvarint()
	if c.err == nil && (n < numStreams || n > maxStreams) {
		return streams, fmt.Errorf("payload: %d streams, want %d to %d", n, numStreams, maxStreams)
	}
	lens := make([]uint64, n)
	total := uint64(0)
	for i := range lens {
		lens[i] = min(c.uvarint(), maxPayload+1)
		total += lens[i]
	}
	if c.err != nil {
		return streams, fmt.Errorf("payload: %w", c.err)
	}
	rest := c.b
	if total != uint64(len(rest)) {
		return streams, fmt.Errorf("payload: streams have %d bytes, %d are there", total, len(rest))
	}
	for i := range streams {
		streams[i].b = rest[:lens[i]:lens[i]]
		rest = rest[lens[i]:]
	}
	return streams, nil
}

var errCut = errors.New("cut short")

// checkFrame makes sure that b is exactly one zstd frame with a checksum. It
// returns its decompressed size, 0 if the frame does not say.
func checkFrame(b []byte) (int, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return 0, errCut
	}
	switch {
	case h.Skippable, h.DictionaryID != 0, !h.HasCheckSum:
		return 0, errors.New("want one zstd frame with a checksum and without dictionary")
	case h.FrameContentSize > maxPayload:
		return 0, fmt.Errorf("%d bytes decompressed, more than %d", h.FrameContentSize, maxPayload)
	}
	size := 0
	if h.HasFCS { // small ones have none
		size = int(h.FrameContentSize)
	}
	for at := h.HeaderSize; ; {
		if len(b)-at < 3 {
			return 0, errCut
		}
		block := int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16
		n := block >> 3
		if block>>1&3 == 1 { // one byte, repeated
			n = 1
		}
		if at += 3 + n; block&1 == 0 {
			continue
		}
		switch at += 4; { // checksum
		case at > len(b):
			return 0, errCut
		case at < len(b):
			return 0, fmt.Errorf("%d bytes follow the frame", len(b)-at)
		}
		return size, nil
	}
}

// cursor reads a stream. After an error all values are zero.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

var errVarint = errors.New("number of more than 64 bits")

func (c *cursor) uvarint() uint64 {
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v := c.b[0]
		c.b = c.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(c.b)
	switch {
	case n == 0:
		c.fail(errCut)
		return 0
	case n < 0:
		c.fail(errVarint)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// count reads a number of things that take at least one byte each in one of the
// streams, so that room can be made for them.
func (c *cursor) count(limit int, what string) int {
	v := c.uvarint()
	if v > uint64(limit) {
		c.fail(fmt.Errorf("%d %s, more than %d", v, what, limit))
		return 0
	}
	return int(v)
}

// bytes reads n bytes.
func (c *cursor) bytes(n int) []byte {
	if n > len(c.b) {
		c.fail(errCut)
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

// text reads up to a NUL byte.
func (c *cursor) text() []byte {
	i := bytes.IndexByte(c.b, 0)
	if i < 0 {
		c.fail(errCut)
		return nil
	}
	b := c.b[:i:i]
	c.b = c.b[i+1:]
	return b
}

// end checks that nothing is left.
func (c *cursor) end() {
	if c.err == nil && len(c.b) > 0 {
		c.fail(fmt.Errorf("%d bytes too many", len(c.b)))
	}
}
