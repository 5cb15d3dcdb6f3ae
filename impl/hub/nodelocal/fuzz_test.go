package nodelocal

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzParse: whatever stands in the file, it is refused or comes back as it was written.
func FuzzParse(f *testing.F) {
	b := newBed(f, authorityStart)
	b.open()
	text, err := os.ReadFile(filepath.Join(b.c.Dir, keysFile))
	check(f, err)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parse(text, "edge-1")
		if err != nil {
			return
		}
		out, err := encode(all)
		check(t, err)
		again, err := parse(out, "edge-1")
		if err != nil || len(again) != len(all) {
			t.Fatalf("%d authorities come back as %d: %v", len(all), len(again), err)
		}
		for i := range all {
			same := again[i].cert
			if !same.Equal(all[i].cert) || (all[i].signer == nil) != (again[i].signer == nil) {
				t.Errorf("authority %d is another", i)
			}
		}
	})
}
