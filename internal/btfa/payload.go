// SPDX-License-Identifier: Apache-2.0

package btfa

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Dictionary is the dictionary that frames are compressed with: names that are likely in
// any archive, each with a NUL byte, the most used last. It is part of the format and must
// not change.
//
//go:embed dictionary
var Dictionary []byte

// decoder is shared by all archives.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, options...)
})

// options are those of decoders.
var options = []zstd.DOption{
	zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderDictRaw(0, Dictionary),
	zstd.WithDecoderMaxMemory(MaxPayload),
	zstd.WithDecoderMaxWindow(MaxPayload),
}

// Unpack returns the payload in the frame of a file.
func Unpack(frame []byte) ([]byte, error) {
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
		return nil, fmt.Errorf("frame: damaged at byte %d: build it again", HeaderLen+failure(frame))
	}
	return payload, nil
}

// failure returns where the first block, or the checksum, begins that cannot be decoded. The frame has passed checkFrame.
func failure(frame []byte) (at int) {
	r := bytes.NewReader(frame)
	d, err := zstd.NewReader(r, options...)
	if err != nil {
		return 0
	}
	defer d.Close()
	_, _ = io.Copy(io.Discard, d)
	read := len(frame) - r.Len() // bytes read, up to the end of the block that failed
	var h zstd.Header
	_ = h.Decode(frame)
	for next := h.HeaderSize; next < read; {
		at = next
		_, next = block(frame, at)
	}
	return at
}

// block returns whether the block at an offset is the last one, and where it ends.
func block(frame []byte, at int) (last bool, end int) {
	head := int(frame[at]) | int(frame[at+1])<<8 | int(frame[at+2])<<16
	n := head >> 3
	if head>>1&3 == 1 { // a repeated byte
		n = 1
	}
	return head&1 != 0, at + 3 + n
}

// Split cuts a payload into its streams. It ignores streams that it does not know; one that is absent is empty.
func Split(payload []byte) (streams [NumStreams]Cursor, err error) {
	c := NewCursor(payload)
	n := c.Uvarint()
	if c.Err == nil && (n < minStreams || n > maxStreams) {
		return streams, fmt.Errorf("payload: %d streams, want %d to %d", n, minStreams, maxStreams)
	}
	lens := make([]uint64, n)
	total := uint64(0)
	for i := range lens {
		lens[i] = min(c.Uvarint(), MaxPayload+1)
		total += lens[i]
	}
	if c.Err != nil {
		return streams, fmt.Errorf("payload: %w", c.Err)
	}
	rest := c.Rest()
	if total != uint64(len(rest)) {
		return streams, fmt.Errorf("payload: streams have %d bytes, want %d", total, len(rest))
	}
	for i := range min(int(n), NumStreams) {
		streams[i] = NewCursor(rest[:lens[i]:lens[i]])
		rest = rest[lens[i]:]
	}
	return streams, nil
}

// checkFrame checks that b is exactly one zstd frame with a checksum. It returns its
// decompressed size, or 0 if the frame does not have it.
func checkFrame(b []byte) (int, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return 0, ErrCut
	}
	switch {
	case h.Skippable, h.DictionaryID != 0, !h.HasCheckSum:
		return 0, errors.New("want one zstd frame with a checksum and without the ID of a dictionary")
	case h.FrameContentSize > MaxPayload:
		return 0, fmt.Errorf("%d bytes decompressed, more than %d", h.FrameContentSize, MaxPayload)
	}
	size := 0
	if h.HasFCS { // small frames may lack it
		size = int(h.FrameContentSize)
	}
	for at := h.HeaderSize; ; {
		if len(b)-at < 3 {
			return 0, ErrCut
		}
		var last bool
		if last, at = block(b, at); !last {
			continue
		}
		switch at += 4; { // checksum
		case at > len(b):
			return 0, ErrCut
		case at < len(b):
			return 0, fmt.Errorf("%d bytes follow the frame", len(b)-at)
		}
		return size, nil
	}
}
