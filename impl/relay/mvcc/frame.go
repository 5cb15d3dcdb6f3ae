package mvcc

import (
	"sync"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Form names one of the ways in which an event is encoded. The zero Form is an object as it came.
type Form struct {
	Media string
	Shape uint8
	Beta  bool
}

// frames are what is made of one event for many readers, beside its frame in the form in which it came.
type frames struct {
	mu   sync.Mutex
	made map[frameKey][]byte
	left *wire.Object // the previous object under the version of the event
}

type frameKey struct {
	form Form
	typ  string
	left bool
}

// frame gives one, and makes it if need be.
func (f *frames) frame(key frameKey, encode func() ([]byte, error)) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if made, ok := f.made[key]; ok {
		return made, nil
	}
	made, err := encode()
	if err == nil {
		f.made[key] = made
	}
	return made, err
}

// leaves gives an object under another version, which is always the same.
func (f *frames) leaves(o *wire.Object, enc wire.Encoding, version uint64) (left *wire.Object, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == nil {
		f.left, err = o.WithVersion(enc, version)
	}
	return f.left, err
}
