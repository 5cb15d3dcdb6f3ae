package identity

import (
	"encoding/binary"
	"time"
)

// Stands is the least time between two denials of the cloud, with neither an allowance nor a break of the link between
// them, after which it has denied. A kube-apiserver that starts, or has lost its etcd, answers 401 and 403 to good
// callers, for some seconds.
const Stands = 10 * time.Second

// second is a time of the wall clock, in seconds since 2020: good until 2156. 0 is never.
type second uint32

const secondEpoch = 1577836800 // 2020

func secondOf(at time.Time) second { return second(max(at.Unix()-secondEpoch, 1)) }

// secondAfter is the first second that begins at or after a time.
func secondAfter(at time.Time) second { return secondOf(at.Add(time.Second - 1)) }

func (s second) time() time.Time { return time.Unix(int64(s)+secondEpoch, 0) }

// word is what the cloud said last of a read of a caller.
type word struct {
	allowed second // when it said yes; kept until a denial stands
	since   second // when it said no after that for the first time, rounded up
	denied  second // and for the last time
}

// stands reports whether the cloud has denied it, and not in passing.
func (w word) stands() bool { return w.denied != 0 && w.denied >= w.since+second(Stands/time.Second) }

// last is when the cloud said something.
func (w word) last() second { return max(w.allowed, w.denied) }

// deny is the word after one more denial. whole is since when the cloud has been there without a break: what it denied
// before that was perhaps another process, which had just started, too.
func (w word) deny(now, whole time.Time) word {
	at := secondOf(now)
	if w.stands() {
		w.denied = max(w.denied, at)
		return w
	}
	if w.denied == 0 || w.since <= secondAfter(whole) || at < w.denied { // the latter: the clock was set back
		w.since = secondAfter(now)
	}
	if w.denied = at; w.stands() {
		w.allowed = 0
	}
	return w
}

// after is the word of a read that was filed elsewhere before, under the same caller's token.
func (w word) after(former word) word {
	if w.last() < former.last() {
		w, former = former, w
	}
	switch {
	case w.denied == 0 || w.allowed != 0:
	case former.stands():
		w.since = former.since
	default:
		w.allowed = former.allowed
	}
	return w
}

// append is how a word is kept on the disk.
func (w word) append(b []byte) []byte {
	for _, at := range []second{w.allowed, w.since, w.denied} {
		b = binary.LittleEndian.AppendUint32(b, uint32(at))
	}
	return b
}

const wordBytes, formerBytes = 12, 4

func wordOf(b []byte) word {
	at := func(i int) second { return second(binary.LittleEndian.Uint32(b[4*i:])) }
	return word{at(0), at(1), at(2)}
}

// appendFormer is how earlier versions keep it: one time, and whether it was denied. One denial does not take a right
// away.
func (w word) appendFormer(b []byte) []byte {
	n := uint32(w.allowed) << 1
	if w.allowed == 0 {
		n = uint32(w.denied)<<1 | 1
	}
	return binary.LittleEndian.AppendUint32(b, n)
}

// formerWord reads what earlier versions kept, by whom each denial stood.
func formerWord(b []byte) word {
	n := binary.LittleEndian.Uint32(b)
	at := max(second(n>>1), 1)
	if n&1 == 0 {
		return word{allowed: at}
	}
	return word{since: at - min(at-1, second(Stands/time.Second)), denied: at}
}
