package moved

import (
	"hash/fnv"
	"iter"
	"maps"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// band is below the version of an object, as many versions wide: those of its corrected forms.
const band = 1 << 20

// View is what clients are shown of a relay. It gives corrected objects their versions, and knows which objects clients
// may have in a corrected form. See the package comment for the rule. It is not safe for concurrent use.
type View struct {
	enc  wire.Encoding
	form Form
	// owed are objects that somebody may have in a corrected form, by key, and the version that this is a form of.
	owed map[string]uint64
	news bool // owed has got more since Unkept
}

// NewView makes one of a relay's objects in an encoding. owed is Owed of the process before.
func NewView(enc wire.Encoding, form Form, owed map[string]uint64) *View {
	v := &View{enc: enc, form: form, owed: map[string]uint64{}}
	maps.Copy(v.owed, owed)
	return v
}

// Show is what gets and lists have of an object.
func (v *View) Show(o *wire.Object) *wire.Object {
	s, _ := v.show(o, sight{})
	return s
}

// sight is a form in which a client has an object. The zero sight is none.
type sight struct {
	version uint64 // that the client was told
	content uint64 // sum of a corrected form, 0 of the cloud's own
}

// show is what a client is shown that has an object in some form already. Another form has another version.
func (v *View) show(o *wire.Object, had sight) (*wire.Object, sight) {
	with := v.form(o)
	if with == o || o.Version < 2 { // there is no version below: the cloud's first is 2
		return o, sight{o.Version, 0}
	}
	h := fnv.New64a()
	_, _ = h.Write(with.Raw)
	is := sight{content: h.Sum64() | 1} // with the version that it is a form of
	n := min(band, o.Version-1)
	below := is.content >> 1 % n
	is.version = o.Version - 1 - below
	switch {
	case is.content == had.content:
		is.version = had.version
	case is.version == had.version:
		is.version = o.Version - 1 - (below+1)%n
	}
	with, err := with.WithVersion(v.enc, is.version)
	if err != nil {
		return o, sight{o.Version, 0}
	}
	if v.owed[o.Key] < o.Version {
		v.owed[o.Key], v.news = o.Version, true
	}
	return with, is
}

// owes reports whether somebody may have a corrected form of this very object.
func (v *View) owes(o *wire.Object) bool { return v.owed[o.Key] == o.Version }

// Prune forgets what the cloud has replaced since: whoever has it is shown that by the relay. It is given all that the
// relay holds.
func (v *View) Prune(objects iter.Seq[*wire.Object]) {
	left := map[string]uint64{}
	for o := range objects {
		if at := v.owed[o.Key]; at >= o.Version { // a relay that was restored may be behind
			left[o.Key] = at
		}
	}
	v.owed = left
}

// Owes reports whether there is anything that somebody may have in a corrected form.
func (v *View) Owes() bool { return len(v.owed) > 0 }

// Unkept reports whether Owed has more than when it was last called.
func (v *View) Unkept() (news bool) {
	news, v.news = v.news, false
	return news
}

// Owed is what has to be kept for the next process, before a client is shown anything of it.
func (v *View) Owed() map[string]uint64 { return maps.Clone(v.owed) }
