package identity

import (
	"net/http"
	"time"
)

// Learn takes the cloud's answer to a read with these headers. certified says that it went there with the hub's
// certificate, as the node's. It is cheap, and may be called for any answer.
func (j *Judge) Learn(header http.Header, certified bool, a Attributes, code int) {
	isDenied := code == http.StatusForbidden || code == http.StatusUnauthorized
	isAllowed := code >= 200 && code < 300 || code == http.StatusNotModified || code == http.StatusNotFound ||
		code == http.StatusGone
	raw, carries, err := bearerOf(header)
	if err != nil || !isDenied && !isAllowed || carries == certified {
		return
	}
	user, now := j.node, j.Now()
	if code == http.StatusUnauthorized { // without a token it is about the hub's certificate, not about rights
		j.refuse(header, a.isServers())
		return
	}
	if carries {
		t := j.known(raw)
		user = t.itself
		known := j.verdicts.last(user.at, authenticated()) != word{}
		k := t.claims.Kubernetes
		if t.claims.ofServiceAccount() {
			j.audiences.learn(&t.claims, now)
		}
		switch {
		case t.err != nil: // the cloud took it: there is a new key
			j.keys.offer(t.token, true)
			j.verdicts.allow(user.at, authenticated(), now)
			return
		case t.claims.ofServiceAccount() && t.by == nil: // they are wanted here
			j.keys.offer(t.token, true)
			j.verdicts.allow(user.at, authenticated(), now)
		case !t.ours || known || k.Pod == nil && k.Node == nil:
			j.verdicts.allow(user.at, authenticated(), now)
		}
		if t.ours && t.claims.ofServiceAccount() {
			j.keys.offer(t.token, false)
			user = t.account
		}
	}
	user = user.acting(header)
	if !isDenied {
		j.verdicts.allow(user.at, a.hash(), now)
		return
	}
	j.verdicts.deny(user.at, a.hash(), now, j.whole())
	name := hashOf(string(user.at.caller[:]), string(user.at.of[:]), a.String(), a.FieldSelector, a.LabelSelector)
	j.doubts.add(name, header, certified, a, func() bool {
		return j.last(user, a).denied != 0 && j.decide(user, a) == allowed
	})
}

// whole is since when the cloud has been there without a break.
func (j *Judge) whole() time.Time { return j.Now().Add(-j.Unbroken()) }

// Refused reports whether the cloud has refused these credentials within RefusedFor, and can be asked: without it, what
// it refused counts if it stands.
func (j *Judge) Refused(h http.Header) bool {
	if !j.refused.any() {
		return false
	}
	d, ok := credentialsOf(h)
	return ok && j.refused.has(d)
}

// Revoked reports whether the cloud's last word on a token that it had taken before was 401, also if that does not
// stand yet, or the token itself says that it has ended: then the cloud has to be asked.
func (j *Judge) Revoked(h http.Header) bool {
	raw, carries, err := bearerOf(h)
	if err != nil || !carries {
		return false
	}
	said := j.said.of(raw)
	ended := !said.end.IsZero() && j.Now().After(said.end)
	return ended || j.verdicts.last(said.at, authenticated()).denied != 0
}

// Refuse takes the cloud's 401 to a request as it was sent: to a read or a write, of whatever.
func (j *Judge) Refuse(sent http.Header, a Attributes) { j.refuse(sent, a.isServers()) }

// refuse takes a 401. itself tells that kube-apiserver has said so, and nobody behind it: then it is about the token,
// else it may be about anything.
func (j *Judge) refuse(h http.Header, itself bool) {
	d, ok := credentialsOf(h)
	if !ok {
		return
	}
	if raw, carries, err := bearerOf(h); carries && err == nil {
		t := judge(raw, j.keys.get())
		user := t.itself
		last := j.verdicts.last(user.at, authenticated())
		good := !last.stands() && (last.allowed != 0 || t.ours && j.inTime(t.token) == nil)
		if good && !itself {
			return
		}
		if t.ours || last != (word{}) { // others are many, and refused anyway
			j.verdicts.deny(user.at, authenticated(), j.Now(), j.whole())
			name := hashOf("authenticated", string(user.at.caller[:]), string(user.at.of[:]))
			j.doubts.add(name, h, false, Attributes{Verb: "get", Path: "/version"}, func() bool {
				last := j.verdicts.last(user.at, authenticated())
				return last.denied != 0 && !last.stands()
			})
		}
	}
	j.refused.add(d)
	j.streams.end(d)
}
