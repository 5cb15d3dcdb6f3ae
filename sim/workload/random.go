package workload

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// The streams of random numbers of one seed.
const (
	streamContent = iota + 1
	streamChanges
)

// nameAlphabet is what apimachinery's names.SimpleNameGenerator and pod template hashes are made of.
const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// random is a source of everything that a workload makes up.
type random struct{ *rand.Rand }

func newRandom(seed int64, stream uint64) random {
	return random{rand.New(rand.NewPCG(uint64(seed), stream))}
}

// suffix is the end of a generated name.
func (r random) suffix(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = nameAlphabet[r.IntN(len(nameAlphabet))]
	}
	return string(b)
}

// uid is a random UUID, version 4.
func (r random) uid() types.UID {
	const hex = "0123456789abcdef"
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], r.Uint64())
	binary.BigEndian.PutUint64(raw[8:], r.Uint64())
	raw[6] = raw[6]&0x0f | 0x40
	raw[8] = raw[8]&0x3f | 0x80
	text := make([]byte, 0, 36)
	for i, b := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = append(text, hex[b>>4], hex[b&0xf])
	}
	return types.UID(text)
}

// podIP is the address of the n-th pod that ever was: 10.128.0.1 and on.
func podIP(n uint32) string {
	var raw [4]byte
	binary.BigEndian.PutUint32(raw[:], 10<<24|128<<16+n)
	return netip.AddrFrom4(raw).String()
}
