// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btfa"
)

// head returns the part of a payload before the streams.
func head(streams *[btfa.NumStreams][]byte) []byte {
	n := btfa.NumStreams
	if len(streams[btfa.StreamFingerprints]) == 0 {
		n = btfa.StreamFingerprints
	}
	b := binary.AppendUvarint(nil, uint64(n))
	for _, s := range streams[:n] {
		b = binary.AppendUvarint(b, uint64(len(s)))
	}
	return b
}

// smallPayload is the size in bytes up to which pack tries for each stream whether it
// should share the zstd block of the stream before. A block has entropy tables of its
// own, some 30 bytes, which pay off for long streams only.
const smallPayload = 64 << 10

// pack returns a file with these streams.
func pack(streams *[btfa.NumStreams][]byte) ([]byte, error) {
	head := head(streams)
	size := len(head)
	for _, s := range streams {
		size += len(s)
	}
	if size > btfa.MaxPayload {
		return nil, tooLarge("%d bytes before compression, more than %d", size, btfa.MaxPayload)
	}
	w, err := newEncoder(size)
	if err != nil {
		return nil, err
	}
	var own [btfa.NumStreams]bool // streams that begin a block
	for i := range own {
		own[i] = true
	}
	best, err := compress(w, head, streams, size, &own)
	for i := 0; i < len(own) && err == nil && size <= smallPayload; i++ {
		var b []byte
		own[i] = false
		if b, err = compress(w, head, streams, size, &own); err == nil && len(b) < len(best) {
			best = b
		} else {
			own[i] = true
		}
	}
	return best, err
}

// newEncoder returns an encoder for payloads of size bytes. The best level has tables of
// 34 MB for the dictionary and for the frame, and copies them for each frame. That takes
// longer than minimizing a dozen kernels. For small payloads the next level makes files
// at most a twentieth larger.
func newEncoder(size int) (*zstd.Encoder, error) {
	level := zstd.SpeedBestCompression
	if size <= smallPayload {
		level = zstd.SpeedBetterCompression
	}
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithEncoderDictRaw(0, btfa.Dictionary),
		zstd.WithEncoderLevel(level), zstd.WithWindowSize(window(size)))
}

// compress returns a file. A stream that is own begins a zstd block, which has its own
// entropy tables.
func compress(w *zstd.Encoder, head []byte, streams *[btfa.NumStreams][]byte, size int, own *[btfa.NumStreams]bool) ([]byte, error) {
	out := bytes.NewBufferString(btfa.Magic)
	out.WriteByte(btfa.Version)
	var err error
	w.ResetContentSize(out, int64(size))
	write := func(b []byte) {
		if err == nil {
			_, err = w.Write(b)
		}
	}
	write(head)
	for i, s := range streams {
		if own[i] && len(s) > 0 && err == nil {
			err = w.Flush()
		}
		write(s)
	}
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// window returns the smallest zstd window for size bytes and the dictionary, or the
// largest that readers accept.
func window(size int) int {
	return min(1<<bits.Len(uint(size+len(btfa.Dictionary))), btfa.MaxPayload)
}
