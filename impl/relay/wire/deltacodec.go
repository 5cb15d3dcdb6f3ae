package wire

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// maxText bounds what a frame makes: the largest object that kube-apiserver takes, 3 MiB, and a group of initial ones.
const maxText = 8 << 20

// maxFrame bounds what arrives of a frame: what cannot be compressed has some bytes more then.
const maxFrame = maxText + 64<<10

// ErrBase says that a difference is to something else than what is at hand.
var ErrBase = errors.New("the difference is to another version of the object")

// hash names bytes that a difference is built on. It is the id of the dictionary in a zstd frame, so it costs nothing
// beside it. 0 would be no id.
func hash(base []byte) uint32 { return max(uint32(xxhash.Sum64(base)), 1) }

// Encoders and decoders keep their tables, and take another dictionary each time.
var (
	alone    = sync.Pool{New: func() any { return encoder(window) }}
	encoders = sync.Pool{New: func() any { return encoder(window, zstd.WithEncoderDictRaw(1, nothing)) }}
	larges   = sync.Pool{New: func() any { return encoder(maxText, zstd.WithEncoderDictRaw(1, nothing)) }}
	decoders = sync.Pool{New: func() any {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxText), zstd.WithDecoderMaxWindow(maxText))
		if err != nil {
			panic(err) // the options are constants
		}
		return z
	}}
	nothing = make([]byte, 8) // the dictionary of an encoder that waits: it must not keep an object
)

// window is how far back most encoders look. They take twice as much memory for it.
const window = 128 << 10

func encoder(window int, more ...zstd.EOption) *zstd.Encoder {
	z, err := zstd.NewWriter(nil, append(more, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(window))...)
	if err != nil {
		panic(err)
	}
	return z
}

// appendWhole appends what makes text of nothing.
func appendWhole(dst, text []byte) []byte {
	z := alone.Get().(*zstd.Encoder)
	defer alone.Put(z)
	return z.EncodeAll(text, dst)
}

// appendDiff appends what makes text of base.
func appendDiff(dst, base, text []byte) ([]byte, error) {
	from := &encoders
	if len(base)+len(text) > window {
		from = &larges
	}
	z := from.Get().(*zstd.Encoder)
	defer from.Put(z)
	if err := z.ResetWithOptions(nil, zstd.WithEncoderDictRaw(hash(base), base)); err != nil {
		return nil, fmt.Errorf("difference of %d bytes to %d: %w", len(text), len(base), err)
	}
	out := z.EncodeAll(text, dst)
	return out, z.ResetWithOptions(nil, zstd.WithEncoderDictRaw(1, nothing))
}

// apply is the reverse of appendDiff. ErrBase: it is built on something else.
func apply(base, diff []byte) (text []byte, err error) {
	var head zstd.Header
	if err := head.Decode(diff); err != nil {
		return nil, fmt.Errorf("a difference of %d bytes: %w", len(diff), err)
	}
	if head.DictionaryID != 0 && (len(base) == 0 || head.DictionaryID != hash(base)) {
		return nil, ErrBase
	}
	if head.FrameContentSize > maxText { // of a small frame it need not say; then the decoder counts
		return nil, fmt.Errorf("a difference that makes %d bytes, at most %d are allowed", head.FrameContentSize, maxText)
	}
	z := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(z)
	options := []zstd.DOption{zstd.WithDecoderDictDelete()}
	if head.DictionaryID != 0 {
		options = append(options, zstd.WithDecoderDictRaw(head.DictionaryID, base))
	}
	if err := z.ResetWithOptions(nil, options...); err != nil {
		return nil, err
	}
	if text, err = z.DecodeAll(diff, nil); err != nil {
		return nil, fmt.Errorf("a difference of %d bytes: %w", len(diff), err)
	}
	return text, z.ResetWithOptions(nil, zstd.WithDecoderDictDelete())
}
