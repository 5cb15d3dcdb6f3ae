package overlay

import (
	"crypto"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/moved"
	"github.com/weir-edge/weir/impl/pki"
)

// reserved is how many numbers are given between two writes of the file: an hour of signs of life.
const reserved = 720

// speaker makes the statement of this node. It has one user.
type speaker struct {
	Config
	file  *file
	lock  *sync.Mutex // of file
	next  uint64
	last  moved.Statement // the newest one. Number 0: there is none
	fresh bool            // it has contents that nobody was told
	chain [][]byte        // that it was signed with
	at    time.Time       // when
	sign  func(what string, text []byte) ([]byte, error)
}

func newSpeaker(c Config, f *file, lock *sync.Mutex) speaker {
	return speaker{Config: c, file: f, lock: lock}
}

var errNoCertificate = errors.New("the hub has no certificate for its pool yet")

// state makes a statement of corrections, with other contents if they are others. The relays are at a version.
func (s *speaker) state(corrections []moved.Correction, at moved.Reached) (left int, err error) {
	cert := s.Cert.Get()
	if cert == nil {
		return 0, errNoCertificate
	}
	key, ok := cert.PrivateKey.(crypto.Signer)
	if !ok {
		return 0, errors.New("the key of the hub's certificate cannot sign")
	}
	beat := s.number()
	now, left := moved.NewStatement(s.Node, beat, beat, corrections)
	changed := s.last.Number == 0 || !s.last.Says(now) || !slices.EqualFunc(s.chain, cert.Certificate, slices.Equal)
	if now.At = at; !changed {
		now.Number, now.At = s.last.Number, s.last.At
	}
	s.last, s.fresh, s.chain, s.at = now, changed, cert.Certificate, s.Clock.Now()
	s.sign = func(what string, text []byte) ([]byte, error) { return pki.VouchAs(key, what, text) }
	return left, nil
}

// news reports whether corrections are others than those of the newest statement.
func (s *speaker) news(corrections []moved.Correction) bool {
	now, _ := moved.NewStatement(s.Node, 1, 1, corrections)
	return s.last.Number == 0 || !s.last.Says(now)
}

// say signs the newest statement.
func (s *speaker) say(whole bool) *moved.Signed {
	if s.last.Number == 0 {
		return nil
	}
	st := s.last
	if !whole && !s.fresh {
		st = st.Again(st.Beat)
	}
	signed, err := st.Sign(s.Pool, s.chain, s.sign)
	if err != nil {
		return nil
	}
	return &signed
}

// number gives the next one. They are at least the seconds of the clock that was proved, if the file is lost.
func (s *speaker) number() uint64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.next == 0 {
		s.next = max(s.file.kept.Next, uint64(max(s.Now().Unix(), 1)))
	}
	if s.next++; s.next >= s.file.kept.Next {
		s.file.kept.Next = s.next + reserved
		s.file.write()
	}
	return s.next
}
