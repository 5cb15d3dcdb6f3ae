package identity

import (
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/store"
)

const (
	audiencesDocument = "weir/audiences" // in the store
	// Bounds of what is kept. A token that has more was meant for many, and teaches little.
	maxAudienceSets, maxAudiences, maxAudience = 8, 8, 256
)

// audiences are those of tokens of service accounts that the cloud has taken, by their issuer. Which of several it took
// a token for, nobody says; so they are kept as they stood together: a token that names all of them names the one. What
// the cloud's API is called (--api-audiences of kube-apiserver) is learnt so, and never guessed from one that was meant
// for others, too.
type audiences struct {
	docs   Documents // nil: they are in memory only
	logger *slog.Logger

	mu  sync.Mutex
	all []audienceSet
}

// audienceSet is what one taken token named, and when the cloud took one that named it.
type audienceSet struct {
	Issuer string    `json:"issuer"`
	Names  []string  `json:"names"` // sorted
	At     time.Time `json:"at"`
}

func newAudiences(docs Documents, logger *slog.Logger) *audiences {
	s := &audiences{docs: docs, logger: logger}
	if docs == nil {
		return s
	}
	d, ok := docs.Document(audiencesDocument)
	if !ok {
		return s
	}
	if err := json.Unmarshal(d.Body, &s.all); err != nil {
		logger.Error("the kept audiences of tokens cannot be used", "err", err)
		s.all = nil
	}
	s.all = slices.DeleteFunc(s.all, func(a audienceSet) bool { return !a.fits() })
	s.all = s.all[:min(len(s.all), maxAudienceSets)]
	return s
}

// fits reports whether a token's audiences are worth keeping.
func (a audienceSet) fits() bool {
	long := func(s string) bool { return len(s) > maxAudience }
	return !long(a.Issuer) && len(a.Names) > 0 && len(a.Names) <= maxAudiences && !slices.ContainsFunc(a.Names, long)
}

// learn takes those of a token that the cloud has taken. It writes when something is new, or was not heard for
// stampAge.
func (s *audiences) learn(c *claims, now time.Time) {
	names := slices.Compact(slices.Sorted(slices.Values(c.Audience)))
	heard := audienceSet{c.Issuer, names, now.UTC().Truncate(time.Second)}
	if !heard.fits() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(a audienceSet) bool { return a.in(c) })
	switch {
	case i < 0: // it makes others needless
		s.all = slices.DeleteFunc(s.all, func(a audienceSet) bool {
			return a.Issuer == heard.Issuer && heard.within(a.Names)
		})
	case now.Sub(s.all[i].At).Abs() < stampAge:
		return
	default:
		heard.Names = s.all[i].Names
		s.all = slices.Delete(s.all, i, i+1)
	}
	s.all = slices.Insert(s.all, 0, heard)
	s.all = s.all[:min(len(s.all), maxAudienceSets)]
	if s.docs == nil {
		return
	}
	b, err := json.Marshal(s.all)
	if err == nil {
		err = s.docs.PutDocument(audiencesDocument, store.Document{ContentType: "application/json", Body: b, At: now})
	}
	if err != nil {
		s.logger.Warn("cannot keep the audiences of tokens", "err", err)
	}
}

// in reports whether a token is of the issuer of a set and names all of it.
func (a audienceSet) in(c *claims) bool { return a.Issuer == c.Issuer && a.within(c.Audience) }

func (a audienceSet) within(names []string) bool {
	return !slices.ContainsFunc(a.Names, func(n string) bool { return !slices.Contains(names, n) })
}

// meant reports whether a token is for the cloud's API: it names all that one named which the cloud took, lately. While
// nothing is learnt, it has to name the issuer, as kube-apiserver has it without --api-audiences.
func (s *audiences) meant(c *claims, lately func(time.Time) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.all, func(a audienceSet) bool { return a.Issuer == c.Issuer }) {
		return c.Audience.Contains(c.Issuer)
	}
	return slices.ContainsFunc(s.all, func(a audienceSet) bool { return lately(a.At) && a.in(c) })
}
