package identity

import (
	"encoding/binary"
	"net/http"
	"slices"
	"testing"
)

// FuzzToken: no token but the good ones counts, and none is too much.
func FuzzToken(f *testing.F) {
	b := newBed(f, nil)
	b.fetch()
	good := b.key.sign(f, podClaims(day, nil))
	for _, raw := range []string{
		"", "a.b.c", good, good + ".", unsigned(podClaims(day, nil)),
		b.key.sign(f, podClaims(day, func(c, _ object) { c["exp"] = -1e300 })),
		b.key.sign(f, object{"iss": issuer, "exp": "x", "aud": 7}),
	} {
		f.Add("Bearer " + raw)
	}
	f.Fuzz(func(t *testing.T, header string) {
		h := http.Header{"Authorization": {header}}
		u, err := b.Verify(h, false)
		if err == nil && u.Name != "system:serviceaccount:default:web" {
			t.Errorf("%q is %q", header, u.Name)
		}
		b.Learn(h, false, Attributes{Verb: "get", Path: "/version"}, 401)
	})
}

// FuzzVerdicts: a file of decisions is read or refused.
func FuzzVerdicts(f *testing.F) {
	f.Add([]byte(verdictMagic))
	f.Add(encodeVerdicts(map[digest]map[digest]word{hashOf("a"): {hashOf("b"): {allowed: secondOf(day)}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		withSum := binary.LittleEndian.AppendUint32(slices.Clone(b), castagnoli(b))
		for _, b := range [][]byte{b, withSum} {
			callers, err := decodeVerdicts(b)
			if err != nil {
				continue
			}
			if again, err := decodeVerdicts(encodeVerdicts(callers)); err != nil || len(again) != len(callers) {
				t.Errorf("%d callers, again %d: %v", len(callers), len(again), err)
			}
		}
	})
}

// FuzzKeys: what the cloud sends is a set of keys or an error.
func FuzzKeys(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"","e":"AQAB"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		set, err := parseKeys(issuer, raw)
		if err == nil && len(set.Keys.Keys) == 0 {
			t.Error("no key, and no error")
		}
	})
}
