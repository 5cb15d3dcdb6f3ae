package identity

import "errors"

// maxJudged bounds the tokens of which is remembered how they were judged: some 3 kB each. The pods of a node have
// about a hundred.
const maxJudged = 256

// judged is a token that was taken apart, and judged by the keys of then. Requests share it, so it is never changed.
type judged struct {
	*token
	by   *keySet // nil: none were known
	ours bool    // see token.ours
	err  error
	// itself is its user as far as the token alone says; account, the service account that the cluster signed it for.
	itself, account User
}

// judge takes a token apart and judges it by some keys.
func judge(raw string, by *keySet) *judged {
	t := readToken(raw)
	x := &judged{token: t, by: by, itself: tokenUser(t)}
	if x.ours, x.err = t.ours(by); x.ours && t.claims.ofServiceAccount() {
		x.account = serviceAccount(&t.claims).with(x.itself)
	}
	return x
}

// ours reports whether the cluster has signed a token, by the keys of a set; nil: none are known. The error says that
// it should have.
func (t *token) ours(set *keySet) (bool, error) {
	if t.signed == nil || set == nil || t.claims.Issuer != set.Issuer {
		return false, nil
	}
	err := t.verify(&set.Keys)
	var unknown *unknownKeyError
	switch {
	case errors.As(err, &unknown):
		return false, unsure("%v", err)
	case err != nil:
		return false, refuse("%v", err)
	}
	return true, nil
}
