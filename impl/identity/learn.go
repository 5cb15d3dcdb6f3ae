package identity

import (
	"net/http"
)

// Learn takes the cloud's answer to a read with these headers. certified says that it went there with the hub's certificate, as the node's.
// It is cheap, and may be called for any answer.
func (j *Judge) Learn(header http.Header, certified bool, a Attributes, code int) {
	isDenied := code == http.StatusForbidden || code == http.StatusUnauthorized
	isAllowed := code >= 200 && code < 300 || code == http.StatusNotModified || code == http.StatusNotFound || code == http.StatusGone
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
		t := readToken(raw)
		ours, err := j.ours(t)
		user = tokenUser(t)
		_, known := j.verdicts.last(user.at, authenticated())
		k := t.claims.Kubernetes
		switch {
		case err != nil: // the cloud took it: there is a new key
			j.keys.offer(t, true)
			j.verdicts.learn(user.at, authenticated(), false, now)
			return
		case t.claims.ofServiceAccount() && j.keys.get() == nil: // they are wanted here
			j.keys.offer(t, true)
			j.verdicts.learn(user.at, authenticated(), false, now)
		case !ours || known || k.Pod == nil && k.Node == nil:
			j.verdicts.learn(user.at, authenticated(), false, now)
		}
		if ours && t.claims.ofServiceAccount() {
			j.keys.offer(t, false)
			user = serviceAccount(&t.claims)
		}
	}
	j.verdicts.learn(user.acting(header).at, a.hash(), isDenied, now)
}

// Refused tells whether the cloud has refused these credentials within RefusedFor.
func (j *Judge) Refused(h http.Header) bool {
	d, ok := credentialsOf(h)
	return ok && j.refused.has(d)
}

// Revoked tells whether the cloud's last word on a token that it had taken before was 401.
func (j *Judge) Revoked(h http.Header) bool {
	raw, carries, err := bearerOf(h)
	if err != nil || !carries {
		return false
	}
	last, known := j.verdicts.last(tokenUser(readToken(raw)).at, authenticated())
	return known && last.denied()
}

// Refuse takes the cloud's 401 to a request as it was sent: to a read or a write, of whatever.
func (j *Judge) Refuse(sent http.Header, a Attributes) { j.refuse(sent, a.isServers()) }

// refuse takes a 401. itself tells that kube-apiserver has said so, and nobody behind it: then it is about the token, else it may be about anything.
func (j *Judge) refuse(h http.Header, itself bool) {
	d, ok := credentialsOf(h)
	if !ok {
		return
	}
	if raw, carries, err := bearerOf(h); carries && err == nil {
		t := readToken(raw)
		user := tokenUser(t)
		last, known := j.verdicts.last(user.at, authenticated())
		ours, _ := j.ours(t)
		good := known && !last.denied() || !known && ours && j.inTime(t) == nil
		if good && !itself {
			return
		}
		if ours || known { // others are many, and refused anyway
			j.verdicts.learn(user.at, authenticated(), true, j.Now())
		}
	}
	j.refused.add(d)
	j.streams.end(d)
}
